"""Programs whose fault is known by construction, each with the report that a user would write about it.

``families`` yields them, ``check`` runs each plainly on its builds and compares what happens with what is claimed
here, ``broken_wheels`` makes the builds that no index has.
"""

from __future__ import annotations

from bench.proving.planted.catalogue import PlantedCase, load_planted, planted_cases
from bench.proving.planted.program import Control, Findings, Planted

__all__ = ["Control", "Findings", "Planted", "PlantedCase", "load_planted", "planted_cases"]
