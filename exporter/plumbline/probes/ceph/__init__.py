"""What the probes of Ceph share: access, sessions, gates, the cluster's OSDs and pools."""
