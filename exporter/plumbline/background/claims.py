"""Results of claims of volumes, read from the storage path once a minute: they come from pods on this node."""

from pathlib import Path

from plumbline.claims.claim_file import ClaimState, read_claims
from plumbline.core.slot import PeriodicSlot
from plumbline.errors import PlumblineError
from plumbline.probes.run.model import Identity
from plumbline.probes.run.schedule import ProbeStatus

EVERY_S = 60.0


def claimed(storage: Path) -> tuple[Identity, ...]:
    """What the files say is measured here, for their baselines."""
    claims, _ = read_claims(storage, quiet=True)
    return tuple(claim.identity for claim in claims)


class ClaimWatch:
    """Shows what is in the files; what is wrong with one is logged once."""

    def __init__(self, storage: Path, vantage: str) -> None:
        self._storage, self._vantage = storage, vantage
        self._known: tuple[str, ...] = ()
        self.slot = PeriodicSlot[tuple[ClaimState, ...]]("claims", EVERY_S, "results of claims", self._read)

    def statuses(self) -> list[ProbeStatus]:
        """Never blocks; empty before the first look, and if the disk below the storage path hangs."""
        try:
            return [claim.status(self._vantage) for claim in self.slot.value]
        except PlumblineError:
            return []

    def identities(self) -> tuple[Identity, ...]:
        """As last read, however long ago."""
        return tuple(claim.identity for claim in self.slot.last or ())

    def _read(self) -> tuple[ClaimState, ...]:
        claims, self._known = read_claims(self._storage, known=self._known)
        return claims
