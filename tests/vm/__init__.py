"""Real virtual machines: the disk project on real NVMe devices, with real systemd, udev, mdadm and file systems."""
