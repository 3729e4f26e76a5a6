"""Long runs: the code behind ``make soak`` and ``make kill-storm``, whose short versions are in ``make test-long``."""
