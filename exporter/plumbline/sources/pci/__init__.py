"""PCI Express, from sysfs and the configuration space."""
