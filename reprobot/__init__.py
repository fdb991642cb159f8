"""The installed tool: ``bot`` and ``runners`` inside one package, beside any other packages of these names.

A wheel holds ``reprobot/bot`` and ``reprobot/runners``. `use_own_packages` puts their folder first on the path of the
process. A checkout has the same two folders at its root, where the boundary between them is checked.
"""

from __future__ import annotations

import sys
from pathlib import Path


def use_own_packages() -> None:
    """Make ``import bot`` and ``import runners`` find the folders of this installation, and no others."""
    here = Path(__file__).parent
    root = str(here if (here / "bot").is_dir() else here.parent)
    if sys.path[0] != root:
        sys.path.insert(0, root)


def main() -> None:
    """Run the command line."""
    use_own_packages()
    from bot.__main__ import main as run_command_line

    run_command_line()
