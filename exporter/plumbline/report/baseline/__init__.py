"""The report on baselines."""
