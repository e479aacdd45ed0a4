"""What the operator may know of the rows that were read, and the public may not."""

from __future__ import annotations

from dataclasses import dataclass, field

from fastgame._arguments import integer, text

__all__ = ["AFTER_RUN", "BEFORE_RUN", "RowCounts"]

#: Why a row is none of a run's that covers some of the steps: nothing is wrong with it.
BEFORE_RUN = "before the first step of this run"
AFTER_RUN = "after the last step of this run"


@dataclass
class RowCounts:
    """How many rows were read, and left out, by reason. Not private: for the operator's console only.

    Attributes
    ----------
    read : int
        Rows that were read.
    dropped : dict of str to int
        Rows that were left out, by reason. A row may be left out of one structure and not of another, and is then
        counted once for each that leaves it out. Where a run covers some of the steps, rows that neither come nor go in
        them are left out too: "before the first step of this run" (an earlier run has counted them, or they came too
        late), "after the last step of this run" (a later one will count them).
    """

    read: int = 0
    dropped: dict[str, int] = field(default_factory=dict)

    def add(self, reason: str, count: int) -> None:
        """Counts rows that were left out."""
        reason = str(text(reason, "reason"))
        count = integer(count, "count")
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count
