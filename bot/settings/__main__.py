"""Print the JSON Schema of the settings."""

from __future__ import annotations

import sys

import msgspec

from bot.settings.model import make_schema

sys.stdout.write(msgspec.json.format(msgspec.json.encode(make_schema()), indent=2).decode() + "\n")
