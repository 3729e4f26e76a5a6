"""The Debian package: a virtual environment of pinned wheels, the unit, the configuration, rules and dashboards."""
