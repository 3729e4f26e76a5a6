"""JUDGE: facts in, findings out. What is off, what it should be, why, and the command that mends it."""
