"""A daemon in a network namespace, asked from inside."""

from __future__ import annotations

from .daemon import Answer, Daemon
from .netns import Namespace
from .scraped import Scrape


class Inside:
    """Requests from within the namespace, where its loopback is."""

    def __init__(self, ns: Namespace, daemon: Daemon) -> None:
        self._ns, self._daemon = ns, daemon

    def get(self, path: str) -> Answer:
        """As :meth:`Daemon.get`."""
        return self._ns.run(lambda: self._daemon.get(path))

    def metrics(self) -> Scrape:
        """As :meth:`Daemon.metrics`."""
        return self._ns.run(self._daemon.metrics)

    def devices(self) -> set[str]:
        """Every device that any network series names."""
        samples = self.metrics().samples
        return {each.labels["device"] for each in samples if each.name.startswith("plumbline_nic_")}
