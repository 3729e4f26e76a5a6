"""The RPM: the same tree as the Debian package, in Fedora's places and with its scriptlets."""
