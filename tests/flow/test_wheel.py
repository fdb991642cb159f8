"""The installed wheel works beside other projects' packages of the names ``bot`` and ``runners``."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from bot.settings import load_settings
from tests.bot.requests.test_handle import forge_of, opened

ROOT = Path(__file__).parents[2]
REPORT = """\
# It aborts

apache-tvm 0.25.0

```python
import tvm
tvm.compile(tvm.ir.IRModule({}))
```

```
Fatal Python error: Aborted
```
"""

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a virtual environment with the wheel, its dependencies, and two packages of other projects."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", with_pip=False)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = folder / "venv" / "lib" / version / "site-packages"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)  # as an installer does: the wheel has no other scheme than this one
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    for name in ("bot", "runners"):
        (site / name).mkdir()
        (site / name / "__init__.py").write_text(f"raise SystemExit('the other {name}')")
    return folder / "venv"


def run(installed: Path, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(installed / "bin/python"), *words], cwd=folder, capture_output=True, text=True, check=False, timeout=400
    )


def test_the_wheel_holds_one_package(installed: Path) -> None:
    (site,) = installed.glob("lib/*/site-packages")
    names = {path.name for path in site.iterdir()} - {"dependencies.pth", "bot", "runners"}
    assert {name for name in names if not name.endswith(".dist-info")} == {"reprobot"}
    (scripts,) = site.glob("*.dist-info/entry_points.txt")
    assert "reprobot = reprobot:main" in scripts.read_text()


def test_the_command_line_finds_its_own_packages(installed: Path, tmp_path: Path) -> None:
    """Also beside a folder ``bot`` in the working directory."""
    (tmp_path / "issue.md").write_text(REPORT)
    (tmp_path / "bot").mkdir()
    (tmp_path / "bot/__init__.py").write_text("raise SystemExit('the folder here')")
    done = run(installed, "-m", "reprobot", "extract", "issue.md", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert '"kind": "crash"' in done.stdout
    script = run(installed, "-c", "import reprobot; reprobot.main()", "--version", folder=tmp_path)
    assert (script.returncode, script.stdout.split()[0]) == (0, "reprobot"), script.stderr


def test_the_child_that_runs_cells_finds_them_too(installed: Path, tmp_path: Path) -> None:
    """It starts in isolated mode, without the path of its parent."""
    sealed = opened(forge_of(), file=b"sandbox: docker")
    assert load_settings(b"sandbox: docker").sandbox == "docker"
    (tmp_path / "plan.json").write_bytes(sealed.data)
    script = (
        "import os, reprobot; reprobot.use_own_packages()\n"
        "from pathlib import Path\n"
        "from runners.cells.processes import CellProcesses\n"
        "from runners.core.job_files import read_plan\n"
        "data = Path('plan.json').read_bytes()\n"
        f"cell = read_plan(data, {sealed.sha256!r}).cells[0]\n"
        f"CellProcesses(os.environ).run(Path('plan.json'), {'0' * 64!r}, cell, Path('results'))\n"
    )
    done = run(installed, "-c", script, folder=tmp_path)
    log = (tmp_path / "any.log").read_text()
    assert "the other" not in done.stderr + log
    assert "sha256" in log, (log, done.stderr)  # our own check of the plan's digest, so our own code ran
