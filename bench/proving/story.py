"""A story: the facts of one bug report, apart from any way of telling them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

Claim = Literal["crash", "error", "wrong-result", "hang"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """The facts that every telling must convey.

    ``failure`` is the output of a run that fails, as the program printed it. ``wrong`` and ``right`` are the lines
    whose values tell a failing run from a good one; ``right`` is empty where no build gives the right values.
    """

    name: str
    toolchain: str
    title: str
    """The complaint as a clause: "softmax over the first axis returns NaN"."""
    files: Mapping[str, str]
    steps: tuple[tuple[str, ...], ...]
    claim: Claim
    failure: str = ""
    wrong: str = ""
    right: str = ""
    version: str = ""
    """The release that the report is about; empty where the report names none."""
    created: date | None = None
    device: str = ""
    accused: tuple[str, ...] = field(default=())
    """Passes, operators or functions that the report names as the cause."""

    @property
    def script(self) -> str | None:
        """The only file of a Python story; None for command lines and for several files."""
        names = [name for name in self.files if name.endswith(".py")]
        return names[0] if len(self.files) == 1 and names else None
