"""Disks in the slots of an enclosure that speaks SES: the kernel's module ``ses`` links the two by SAS address."""

from __future__ import annotations

from functools import partial

from lab import hardware
from lab.guest import Guest
from lab.table import Group, Row, Seen

SLOTS = {"SAS00001": 3, "SAS00002": 6}


def place(serial: str, guest: Guest) -> Seen:
    slot = guest.json(f"plumbline disk {guest.disk(serial)} --json")[0]["slot"]
    return Seen(f"Slot {SLOTS[serial]:02} of enclosure {hardware.ENCLOSURE:#x}", slot)


def light(serial: str, guest: Guest) -> Seen:
    """Switched by our command; the enclosure itself says which lights are on."""
    name = guest.disk(serial)
    truth, figure = {}, {}
    for how, on in (("on", {SLOTS[serial]}), ("off", set())):
        guest.run(f"plumbline disk {name} --locate {how}")
        truth[how], figure[how] = on, set(guest.enclosure.lit)
    return Seen({how: str(slots) for how, slots in truth.items()}, {how: str(slots) for how, slots in figure.items()})


GROUP = Group(
    "enclosure",
    (
        Row("SAS hard disk", "its slot, by SES", partial(place, "SAS00001")),
        Row("SAS SSD", "its slot, by SES", partial(place, "SAS00002")),
        Row("SAS hard disk", "the slot's light", partial(light, "SAS00001")),
        Row("SAS SSD", "the slot's light", partial(light, "SAS00002")),
    ),
)
