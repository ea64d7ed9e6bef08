"""Hosts with a real sshd on loopback, and ways on which a connection is cut, refused or never answered."""
