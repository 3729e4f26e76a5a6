"""Probes of disks and directories on them: fio, canaries over raw disks."""
