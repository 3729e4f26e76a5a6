"""The documented and the measured baselines: model, profiles (data), recording."""
