"""Three storage hosts on a virtual switch with a Ceph of their own, faults, and the notifications of each."""
