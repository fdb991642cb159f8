"""The imports of a zygote and of an instrumented run: garbage is collected as usual after them, and not before."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
IMPORTING = """\
import gc, json, sys
sys.path[:0] = sys.argv[1:]
from runners.guest import import_without_collecting
from runners.guest.script.zygote import import_modules
usual = gc.get_threshold()
problem = import_without_collecting(lambda: import_modules({"statements": ["import big"], "own": []}))
during = sys.modules["big"].during
print(json.dumps([problem, usual, during, gc.get_threshold(), gc.isenabled()]))
"""


@pytest.mark.parametrize(
    ("sets", "threshold", "enabled"),
    [("", None, True), ("gc.set_threshold(5, 6, 7)", [5, 6, 7], True), ("gc.disable()", None, False)],
    ids=["nothing", "a threshold", "no collection"],
)
def test_a_fork_collects_garbage_as_its_imports_have_set(
    tmp_path: Path, sets: str, threshold: list[int] | None, enabled: bool
) -> None:
    """During the imports nothing is collected. The interpreter's settings, or a module's own, hold after them."""
    (tmp_path / "big.py").write_text(f"import gc\nduring = gc.get_threshold()[0]\n{sets}\n")
    words = [sys.executable, "-c", IMPORTING, str(ROOT), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    problem, usual, during, after, collects = json.loads(done.stdout)
    assert problem == ""
    assert during == 0
    assert after == (threshold or usual)
    assert collects is enabled


INSTRUMENTED = """\
import gc, json, sys
sys.path[:0] = sys.argv[1:]
from runners.guest.tvm.testcase import import_compiler
usual = gc.get_threshold()
tvm = import_compiler()
print(json.dumps([tvm.during, gc.get_freeze_count() > len(tvm.objects), gc.get_threshold() == usual]))
"""


def test_an_instrumented_run_imports_the_compiler_as_a_zygote_does(tmp_path: Path) -> None:
    """The objects of the import are not looked through again in the run."""
    (tmp_path / "tvm.py").write_text("import gc\nduring = gc.get_threshold()[0]\nobjects = [[] for _ in range(9)]\n")
    words = [sys.executable, "-c", INSTRUMENTED, str(ROOT), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == [0, True, True]
