"""JUDGE: readings in, findings out."""
