"""How exposed the daemon is: where it listens, and what it asks of clients."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from plumbline.web.guard import Guard


@dataclass(frozen=True, slots=True)
class Door:
    """``reach``: ``loopback`` or ``network``; ``encryption``: ``tls`` or ``none``; ``authentication``: ``none``,
    ``password``, ``certificate`` or both (``certificate+password``)."""

    reach: str
    encryption: str
    authentication: str
    lost: tuple[str, ...] = ()
    """Guards that were active since the start and no longer are."""

    @classmethod
    def of(cls, host: str, guard: Guard) -> Door:
        """``host``: the numeric address listened on; empty: all addresses."""
        asked = [
            name for name, asks in (("certificate", guard.asks_certificate), ("password", guard.asks_password)) if asks
        ]
        return cls(
            reach="loopback" if _is_loopback(host) else "network",
            encryption="tls" if guard.encrypts else "none",
            authentication="+".join(asked) or "none",
            lost=tuple(sorted(guard.lost)),
        )

    @property
    def warning(self) -> str:
        """What an operator should know; empty: nothing. An open port is common among exporters, and no mistake."""
        lost = f"no more since a reload: {', '.join(self.lost)}; a restart takes that as meant" if self.lost else ""
        return "; ".join(each for each in (self._open, lost) if each)

    @property
    def _open(self) -> str:
        if self.reach == "loopback":
            return ""
        if self.authentication == "none":
            return (
                "everybody who reaches this port may read everything here; "
                "--web.config.file names users or client certificates (docs/web.md)"
            )
        if self.encryption == "none":
            return "passwords cross the network unencrypted; add tls_server_config to the web configuration file"
        return ""


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
