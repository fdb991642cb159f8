"""An interrupt is exit code 130, wherever Python was at that moment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

INTERRUPTED = """\
import sys
import types
from bot.__main__ import main

module = types.ModuleType("bot.cli.app")
module.app = lambda **options: {during}
sys.modules["bot.cli.app"] = module
main()
"""


@pytest.mark.parametrize("during", ["exec('raise KeyboardInterrupt')", "(_ for _ in ()).throw(KeyboardInterrupt)"])
def test_an_interrupt_is_an_exit_code_and_no_signal(during: str, tmp_path: Path) -> None:
    """Python runs generated text for each dataclass, so an interrupt there is likely in the first second."""
    (tmp_path / "interrupted.py").write_text(INTERRUPTED.format(during=during))
    done = subprocess.run(
        [sys.executable, "-m", "interrupted"],
        env={"PYTHONPATH": f"{tmp_path}:{ROOT}"}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 130
    assert done.stderr == "reprobot: interrupted; nothing was left running\n"
