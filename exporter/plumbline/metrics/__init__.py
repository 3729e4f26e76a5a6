"""From a collector's samples to the bytes of a metrics page."""
