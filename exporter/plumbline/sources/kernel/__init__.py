"""The kernel's own counters and settings: /proc, /proc/sys, BPF."""
