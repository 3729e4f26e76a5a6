"""make demo and make demo-slow: this host's daemon under a real Prometheus and a real Alertmanager, on loopback."""
