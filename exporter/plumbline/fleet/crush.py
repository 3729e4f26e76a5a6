"""Failure domains from the cluster's CRUSH map, as a daemon shows it on its page (the collector ``cephmap``)."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from plumbline.core.foreign import one_line
from plumbline.errors import ConfigError
from plumbline.fleet.inventory import Host, with_domains
from plumbline.sources.http import read_page
from plumbline.sources.prometheus.access import OPEN, Access

PLACE = "plumbline_ceph_osd_crush_location_info"


def read_racks(url: str, *, timeout_s: float, access: Access = OPEN) -> Mapping[str, str]:
    """As :func:`racks_of`, of the page ``url``. Raises :class:`Unavailable` or :class:`ConfigError`."""
    page = read_page(url, timeout_s=timeout_s, access=access)
    return racks_of(page.text, where=url)


def racks_of(text: str, *, where: str) -> Mapping[str, str]:
    """Host as CRUSH names it → its rack. Raises :class:`ConfigError` where the page says nothing about racks."""
    racks: dict[str, str] = {}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                host, rack = sample.labels.get("host"), sample.labels.get("rack")
                if sample.name == PLACE and host and rack:
                    racks[host] = rack
    except (ValueError, LookupError, TypeError) as error:
        raise ConfigError(where, f"is no page of metrics: {one_line(error)}") from None
    if not racks:
        reason = (
            f"no rack in {PLACE}; ask the node that queries the cluster's map (ceph.map), or name domains in the list"
        )
        raise ConfigError(where, reason)
    return racks


def missing(hosts: Sequence[Host], racks: Mapping[str, str]) -> list[str]:
    """The names of the hosts that are not in ``racks``."""
    return [host.name for host in hosts if not with_domains((replace(host, domain=""),), racks)[0].domain]
