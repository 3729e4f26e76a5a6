"""Disks and devices built on them: block devices, arrays, health."""
