"""What the Debian package and the RPM have in common: wheel, environment, files, names; and ``make packages``."""
