"""The pictures of the documentation, drawn from what really runs: ``make pictures``."""
