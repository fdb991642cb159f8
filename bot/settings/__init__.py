"""The settings of one repository: ``.github/reprobot.yml`` and the inputs of the action.

`model` declares every key. `load` reads a file and names its faults. ``python -m bot.settings`` prints the JSON
Schema, which ``docs/reprobot.schema.json`` publishes for editors.
"""

from __future__ import annotations

from bot.settings.load import PATH, load_settings
from bot.settings.model import (
    INPUTS,
    PROFILES,
    Budgets,
    Events,
    Settings,
    UnaskedAnswers,
    WithoutCode,
    list_keys,
    make_schema,
)

__all__ = [
    "INPUTS",
    "PATH",
    "PROFILES",
    "Budgets",
    "Events",
    "Settings",
    "UnaskedAnswers",
    "WithoutCode",
    "list_keys",
    "load_settings",
    "make_schema",
]
