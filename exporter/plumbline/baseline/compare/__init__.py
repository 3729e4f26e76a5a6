"""Two baselines beside each other, or a baseline and what is measured now."""
