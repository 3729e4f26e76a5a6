"""The documented profiles, parsed once for all tests of a process."""

from plumbline.baseline.profiles import load_profiles

PROFILES = load_profiles()
