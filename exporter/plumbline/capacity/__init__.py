"""What a change of hardware, growth or pools would mean for a cluster's capacity."""
