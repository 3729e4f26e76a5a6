"""Baselines of many nodes from a control host: recorded in waves, judged by class, accepted, signed, put in place."""
