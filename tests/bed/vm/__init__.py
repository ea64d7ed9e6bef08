"""A virtual machine with emulated NVMe disks."""
