"""axe finds no fault on a page: checked in Chromium, with the package that its authors publish."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from bot.report.page import render_page
from tests.bot.report import reports

AXE = "axe-core@4.14.1"
SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
"""Of ``axe.min.js`` in the package."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SIZES = {"desktop": "1000,900", "telephone": "390,900"}
_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
_RUN = """
setTimeout(() => axe.run().then(found => {
  const shown = document.createElement("pre");
  shown.id = "found";
  shown.textContent = JSON.stringify(found.violations.map(one => [one.id, one.nodes.length, one.nodes[0].html]));
  document.body.append(shown);
}), 200);
"""


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script, from the package index of npm, pinned by version and hash."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("axe")
    made = subprocess.run(
        [npm, "pack", AXE, "--silent", "--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=60000"],
        cwd=folder, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    archives = list(folder.glob("*.tgz"))
    if made.returncode or not archives:
        pytest.skip(f"{AXE} cannot be fetched: {made.stderr[-200:]}")
    with tarfile.open(archives[0]) as archive:
        member = archive.extractfile("package/axe.min.js")
        assert member is not None
        script = member.read()
    assert hashlib.sha256(script).hexdigest() == SHA256
    return script.decode()


@pytest.fixture(scope="module")
def browser() -> str:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"none of these is installed: {', '.join(BROWSERS)}")
    return found


@pytest.mark.contract
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", reports.ALL)
def test_axe_finds_nothing(name: str, size: str, axe: str, browser: str, tmp_path: Path) -> None:
    """On a page of each shape, wide and narrow. The page's policy is left out: it would refuse axe, as any script."""
    page = _POLICY.sub("", render_page(reports.ALL[name]()))
    safe = axe.replace("</script", "<\\/script")
    scripts = f"<script>{safe}</script><script>{_RUN}</script></body>"
    file = tmp_path / "page.html"
    file.write_text(page.replace("</body>", scripts), encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--window-size={SIZES[size]}", "--dump-dom"]
    made = subprocess.run(
        [browser, *flags, f"--user-data-dir={tmp_path}/profile", "--virtual-time-budget=20000", file.as_uri()],
        capture_output=True, text=True, timeout=120, check=False, env={**os.environ, "HOME": str(tmp_path)},
    )  # fmt: skip
    found = re.search(r'<pre id="found">(.*?)</pre>', made.stdout, re.DOTALL)
    assert found is not None, made.stderr[-500:]
    assert json.loads(found[1]) == []
