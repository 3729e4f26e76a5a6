"""The quarterly review: what Prometheus knows about a period, judged, described and drawn."""
