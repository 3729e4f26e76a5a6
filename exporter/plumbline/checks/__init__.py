"""JUDGE: facts in, findings out: what is wrong, what it should be, why, and the command that fixes it."""
