"""The runner image: built here from nothing, and both compilers' main job inside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.flow.test_command_line import EXAMPLES, ROOT, reprobot

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.compilers,
    pytest.mark.skipif(
        shutil.which("podman") is None or shutil.which("debootstrap") is None or os.geteuid() != 0,
        reason="building an image here needs podman, debootstrap (tools/setup-system.sh --devices) and root",
    ),
]


def build(stage: str, name: str) -> dict[str, Any]:
    """What podman says of the image just built."""
    words = [str(ROOT / "tools/images.sh"), stage, name]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split()[-1] == name
    seen = subprocess.run(["podman", "image", "inspect", name], capture_output=True, text=True, check=True)
    (document,) = json.loads(seen.stdout)
    return dict(document)


@pytest.fixture(scope="module")
def runner() -> dict[str, Any]:
    return build("runner", "localhost/reprobot-runner:test")


def test_the_runner_has_no_compiler_and_no_root(runner: dict[str, Any]) -> None:
    """Labelled, small, as nobody; no release of anything is baked in."""
    assert runner["Config"]["Labels"]["io.reprobot.stage"] == "runner"
    assert runner["Config"]["User"] == "65534:65534"
    assert runner["Size"] < 700_000_000
    looks = "import importlib.util as u, sys; sys.exit(any(u.find_spec(name) for name in ('tvm', 'iree', 'numpy')))"
    limits = ["--runtime=runc", "--ulimit=nofile=1024:1024", "--ulimit=nproc=512:512", "--network=none"]
    words = [
        "podman",
        "run",
        "--rm",
        "--pull=never",
        *limits,
        "localhost/reprobot-runner:test",
        "python3",
        "-c",
        looks,
    ]
    assert subprocess.run(words, capture_output=True, check=False).returncode == 0


def test_another_build_is_the_same_bit_for_bit(runner: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """From the same base and archive, with nothing taken from the first build: each layer has the same digest."""
    monkeypatch.setenv("REBUILD", "1")
    try:
        again = build("runner", "localhost/reprobot-runner:again")
        assert again["RootFS"]["Layers"] == runner["RootFS"]["Layers"]
        assert len(again["RootFS"]["Layers"]) > 1
    finally:
        subprocess.run(
            ["podman", "rmi", "--force", "localhost/reprobot-runner:again"], capture_output=True, check=False
        )


@pytest.mark.parametrize(
    ("example", "versions", "kind"),
    [
        ("equal-on-bool-tensors", "0.27.0.post1", "confirmed"),
        ("f16-row-sums-stuck-at-256", "3.10.0,3.13.0", "regression"),
    ],
)
def test_the_main_job_runs_inside_it(
    runner: dict[str, Any], example: str, versions: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same verdicts as on the host's system, and every observation names the image."""
    monkeypatch.setenv("REPROBOT_IMAGE", "localhost/reprobot-runner:test")
    out = tmp_path / "out.json"
    issue = str(EXAMPLES / f"{example}.md")
    done = reprobot("reproduce", issue, "--versions", versions, "--sandbox", "podman", "--json", str(out))
    assert done.returncode == 0, done.stderr
    document = json.loads(out.read_text())
    assert document["verdict"]["kind"] == kind
    assert {one["image"] for one in document["observations"]} == {runner["Id"]}
