"""What a device can mean: the range of each kind of figure that tools and firmware report.

Firmware fills fields that it does not support with nonsense: 0 or the lowest temperature of the disk's life as its
temperature limit, all ones as a count (smartmontools' tickets 138, 154, 198). Tools read columns past the end of a
page. A figure outside its range is unknown; the rest of the answer stands. What a tool reported is an ``object`` until
a range has let it through, so that no figure can be used without one.
"""

from msgspec import Struct

ALL_ONES = frozenset(2**bits - 1 for bits in (31, 32, 48, 63, 64))  # a device that does not answer, or does not count


class Range(Struct, frozen=True):
    """The lowest and the highest value that a device can mean."""

    lowest: int
    highest: int

    def of(self, figure: object) -> int | None:
        """The whole number that was reported, or ``None`` if there is none, or none that can be."""
        if not isinstance(figure, int) or isinstance(figure, bool) or figure in ALL_ONES:
            return None
        return figure if self.lowest <= figure <= self.highest else None


PERCENT = Range(0, 100)
WEAR_PERCENT = Range(0, 255)  # NVMe and ATA stop counting there
HOURS = Range(0, 100 * 366 * 24)
COUNT = Range(0, 10**12)  # errors, sectors, power cycles: above what a disk of 500 TB has sectors of
BYTES = Range(0, 10**20)  # a thousand years at 3 GB/s
CELSIUS = Range(-60, 150)
# No disk is specified for less than 40 °C, and no flash or motor for more than 110.
LIMIT_CELSIUS = Range(40, 110)
