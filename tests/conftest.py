"""For all tests: Hypothesis without a deadline, because a time is a matter of the machine's load and not of ours."""

from hypothesis import settings

settings.register_profile("plumbline", deadline=None)
settings.load_profile("plumbline")
