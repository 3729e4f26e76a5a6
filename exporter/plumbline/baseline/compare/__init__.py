"""Comparison of two baselines, or of a baseline with current measurements."""
