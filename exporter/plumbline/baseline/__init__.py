"""Documented and measured baselines: the model, the profiles (data) and recording."""
