"""The example that makes Python-only builds: what of a release and what of a commit ends in the wheel."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

OVERLAY = Path(__file__).parents[2] / "examples" / "python-only" / "overlay.py"
METADATA = "Metadata-Version: 2.1\nName: deep-calc\nVersion: 2.0\nRequires-Dist: numpy\n"


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A site with ``deep-calc`` 2.0 installed: a library, data, and Python of its own."""
    site = tmp_path / "site"
    files = {
        "deepcalc/__init__.py": "REVISION = 'release'\n",
        "deepcalc/gone.py": "",
        "deepcalc/lib/libcore.so": "compiled",
        "deepcalc/data.json": "{}",
        "deepcalc.libs/libother.so": "beside it",
        "deep_calc-2.0.dist-info/METADATA": METADATA,
        "deep_calc-2.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n",
    }
    files["deep_calc-2.0.dist-info/RECORD"] = "".join(f"{name},,\n" for name in files)
    for name, text in files.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    return site


def overlay(release: Path, sources: Path, out: Path) -> subprocess.CompletedProcess[str]:
    out.mkdir()
    return subprocess.run(
        [sys.executable, str(OVERLAY), "deep-calc", "deepcalc", str(sources), str(out), "1a2b3c4"],
        env={"PYTHONPATH": str(release)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_python_is_the_commits_and_the_rest_the_releases(release: Path, tmp_path: Path) -> None:
    """A file that the commit lacks is not taken from the release; the version and the needs say what it is."""
    sources = tmp_path / "python" / "deepcalc"
    (sources / "sub").mkdir(parents=True)
    (sources / "__init__.py").write_text("REVISION = 'commit'\n")
    (sources / "sub" / "new.py").write_text("")
    (sources / "core.cc").write_text("not Python")
    assert overlay(release, sources, tmp_path / "out").returncode == 0
    with zipfile.ZipFile(tmp_path / "out" / "deep_calc-2.0+python.g1a2b3c4-py3-none-any.whl") as wheel:
        names = {name for name in wheel.namelist() if ".dist-info" not in name}
        assert wheel.read("deepcalc/__init__.py") == b"REVISION = 'commit'\n"
        metadata = wheel.read("deep_calc-2.0+python.g1a2b3c4.dist-info/METADATA").decode()
    assert names == {
        "deepcalc/__init__.py",
        "deepcalc/sub/new.py",
        "deepcalc/lib/libcore.so",
        "deepcalc/data.json",
        "deepcalc.libs/libother.so",
    }
    assert "Version: 2.0+python.g1a2b3c4\n" in metadata
    assert "Requires-Dist: numpy\n" in metadata


def test_a_commit_without_the_package_is_no_build(release: Path, tmp_path: Path) -> None:
    """Rather than a wheel of the release alone, which would answer for the wrong commit."""
    done = overlay(release, tmp_path / "nowhere", tmp_path / "out")
    assert done.returncode != 0
    assert "no Python files below" in done.stderr
    assert not list((tmp_path / "out").iterdir())
