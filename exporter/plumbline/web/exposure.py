"""How exposed the daemon is: where it listens, and what it asks of clients."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from plumbline.web.guard import Guard


@dataclass(frozen=True, slots=True)
class Exposure:
    """``reach``: ``loopback`` or ``network``; ``encryption``: ``tls`` or ``none``; ``authentication``: ``none``,
    ``password``, ``certificate`` or both (``certificate+password``)."""

    reach: str
    encryption: str
    authentication: str
    lost: tuple[str, ...] = ()  # Guards that were active since the start and no longer are

    @classmethod
    def of(cls, host: str, guard: Guard) -> Exposure:
        """``host``: the numeric address listened on; empty: all addresses."""
        asked = (("certificate", guard.asks_certificate), ("password", guard.asks_password))
        return cls(
            reach="loopback" if _is_loopback(host) else "network",
            encryption="tls" if guard.encrypts else "none",
            authentication="+".join(name for name, asks in asked if asks) or "none",
            lost=tuple(sorted(guard.lost)),
        )

    @property
    def warning(self) -> str:
        """What an operator should know; empty: nothing. An open port is common among exporters, and no mistake."""
        warnings = []
        if self.reach == "network" and self.authentication == "none":
            warnings.append(
                "anyone who can reach this port can read everything here; "
                "configure users or client certificates with --web.config.file (docs/web.md)"
            )
        elif self.reach == "network" and self.encryption == "none":
            warnings.append(
                "passwords cross the network unencrypted; add tls_server_config to the web configuration file"
            )
        if self.lost:
            warnings.append(f"a reload removed {', '.join(self.lost)}; restart the daemon if this is intended")
        return "; ".join(warnings)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
