"""Draws the dashboards from a Prometheus with data, as Grafana would lay them out: ``make preview``. For developers."""
