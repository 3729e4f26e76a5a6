"""Disks and what is made of them: block devices, arrays, health."""
