"""Where networkd and NetworkManager both run: NetworkManager's files as Debian 13's wrote them, beside networkd's."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.sources.net.ownership import Manager, Owner, read_owner

UUID = "connection-uuid=8a8c4033-cf26-4193-80a2-8d1f9c4e9676\n"
OWN = f"[device]\nmanaged=true\n{UUID}route-metric-default-effective=100\n"
EXTERNAL = f"[device]\nmanaged=true\n{UUID}"
DISCONNECTED = "[device]\nmanaged=true\n"
GENERATED = "[connection]\nid=ens2\n\n[.nmmeta]\nnm-generated=true\nvolatile=true\nexternal=true\n"
CONFIGURED = "ADMIN_STATE=configured\nNETWORK_FILE=/etc/systemd/network/20-storage.network\n"
UNMANAGED = "ADMIN_STATE=unmanaged\n"

NETWORKD = Owner(Manager.NETWORKD, "20-storage.network")
NETWORK_MANAGER = Owner(Manager.NETWORK_MANAGER)
IFUPDOWN = Owner(Manager.IFUPDOWN, "/etc/network/interfaces")


@pytest.mark.parametrize(
    ("state", "profile", "link", "stanza", "owner"),
    [
        (OWN, "", UNMANAGED, False, NETWORK_MANAGER),
        (EXTERNAL, GENERATED, CONFIGURED, False, NETWORKD),
        (EXTERNAL, "", CONFIGURED, False, NETWORKD),  # the profile is root's: not everybody may read it
        (EXTERNAL, GENERATED, UNMANAGED, True, IFUPDOWN),
        (EXTERNAL, GENERATED, UNMANAGED, False, None),
        (DISCONNECTED, "", UNMANAGED, True, IFUPDOWN),
        (DISCONNECTED, "", UNMANAGED, False, None),
    ],
)
def test_whose_it_is(state: str, profile: str, link: str, *, stanza: bool, owner: Owner | None, tmp_path: Path) -> None:
    run = tmp_path / "run"
    for path, content in {
        tmp_path / "sys/class/net/ens2/ifindex": "9\n",
        run / "NetworkManager/devices/9": state,
        run / "NetworkManager/system-connections/ens2.nmconnection": profile,
        run / "systemd/netif/links/9": link,
        tmp_path / "etc/network/interfaces": "iface ens2 inet manual\n" if stanza else "",
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    assert read_owner(Roots.under(tmp_path), "ens2") == owner
