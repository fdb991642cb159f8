"""Run a plan on this machine: the only entry, which combines engine, store and toolchains.

``bot`` passes a `Plan` and gets an `Investigation`. Everything between is on this side of the trust boundary. Start
reading at `Workbench.run` (``workbench.py``).
"""

from __future__ import annotations

from runners.probe.sessions import LIFE_S, SessionPool
from runners.workbench.opening import open_workbench
from runners.workbench.workbench import Workbench

__all__ = ["LIFE_S", "SessionPool", "Workbench", "open_workbench"]
