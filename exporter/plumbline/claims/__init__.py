"""What Kubernetes itself is measured by, from a pod: a volume from its claim to its first write."""
