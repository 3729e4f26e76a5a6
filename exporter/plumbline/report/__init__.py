"""The quarterly review: what a Prometheus knows of a period, judged, told and drawn."""
