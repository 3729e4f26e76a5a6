"""Network ports and links: netlink, ethtool, sysfs."""
