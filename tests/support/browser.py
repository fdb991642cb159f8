"""Chromium as readers of pages have it: load a file, run its scripts, and return the document."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser() -> str:
    """Return the path of an installed browser; skip the test without one."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"none of these is installed: {', '.join(BROWSERS)}")
    return found


def load_page(page: str, folder: Path, size: str = "1000,900") -> str:
    """Return the document of a page after its scripts ran, as HTML. ``size`` is the window's, in pixels."""
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--window-size={size}", "--dump-dom"]
    made = subprocess.run(
        [find_browser(), *flags, f"--user-data-dir={folder}/profile", "--virtual-time-budget=20000", file.as_uri()],
        capture_output=True, text=True, timeout=120, check=False, env={**os.environ, "HOME": str(folder)},
    )  # fmt: skip
    assert "</html>" in made.stdout, made.stderr[-500:]
    return made.stdout
