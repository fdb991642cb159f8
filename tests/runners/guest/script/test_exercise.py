"""The names that a script reaches in the compiler's code, and those that the compiler defines."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from runners.guest.script.exercise import Watch, run_watched

COMPILER = """\
class LayerNorm:
    @classmethod
    def convert(cls):
        return 1

class BatchNorm(LayerNorm):
    pass

class FusePass:
    def __init__(self):
        self.made = True

def fold_constants(made):
    return made

def unused():
    pass
"""


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = tmp_path / "madecompiler"
    package.mkdir()
    (package / "__init__.py").write_text(COMPILER, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.delitem(sys.modules, "madecompiler", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("code", "reached"),
    [
        ("", []),
        ("madecompiler.BatchNorm.convert()", ["batch_norm"]),
        ("madecompiler.FusePass()", ["FusePass"]),
        ("madecompiler.fold_constants(2)", ["FoldConstants"]),
        ("def fuse_pass(): pass\nfuse_pass()", []),
        ("import threading\nt = threading.Thread(target=madecompiler.FusePass)\nt.start()\nt.join()", ["FusePass"]),
    ],
)
def test_reached_names_are_those_of_called_functions_of_the_compiler(
    compiler: Path, code: str, reached: list[str]
) -> None:
    """A function of the script counts for nothing, and the body of a class is no use of the class."""
    script = compiler / "repro.py"
    script.write_text(f"import madecompiler\n{code}\n", encoding="utf-8")
    watch = Watch(["madecompiler"], ["batch_norm", "FusePass", "FoldConstants", "Resnet"])
    before = sys.getprofile()
    run_watched(str(script), watch)
    assert sys.getprofile() is before
    out = compiler / "out.json"
    watch.write_report(str(out))
    line = json.loads(out.read_text(encoding="ascii"))
    assert line["kind"] == "reach"
    assert line["evidence"] == {"reached": reached, "known": ["batch_norm", "FusePass", "FoldConstants"]}
