"""What has no domain: files that are ours, files that people name, the kernel's files, threads."""
