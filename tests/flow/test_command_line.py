"""The program as a user starts it: exit codes and sentences for bad input, without a sandbox or a compiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.repository import make_repository

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "issues"
pytestmark = pytest.mark.thorough
"""Each test starts the program."""


def reprobot(*arguments: str, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the console program; the cache named by REPROBOT_CACHE in ``environment`` is the caller's."""
    done = subprocess.run(
        [sys.executable, "-m", "bot", *arguments],
        input=stdin,
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "120", "NO_COLOR": "1", **environment},
        timeout=400,
        check=False,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def only_sentence(done: subprocess.CompletedProcess[str]) -> str:
    """The one line on standard error."""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, done.stderr
    return lines[0]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"x" * 5_000_000, "larger than"),
        (b"\x7fELF\x00\x01\x02", "binary"),
        (b"# caf\xe9", "not UTF-8"),
    ],
)
def test_what_is_no_issue_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    """One sentence that names the file, exit code 2."""
    path = tmp_path / "issue.md"
    path.write_bytes(content)
    done = reprobot("reproduce", str(path))
    assert done.returncode == 2
    assert says in only_sentence(done)
    assert str(path) in only_sentence(done)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    """With the forms that an ISSUE may have."""
    done = reprobot("reproduce", str(tmp_path / "none.md"))
    assert done.returncode == 2
    assert "there is no file" in only_sentence(done)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--toolchain", "gcc"), "unknown toolchain 'gcc'"),
        (("--versions", "9.9.9"), "there is no tvm 9.9.9"),
        (("--versions", "0.27.0..0.25.0"), "write the older version first"),
        (("--versions", ">=x"), "not a version range"),
        (("--sandbox", "chroot"), "no sandbox is named 'chroot'"),
        (("--devices", "tpu"), "has no device 'tpu'"),
    ],
)
def test_what_does_not_exist_is_named_with_what_does(options: tuple[str, ...], says: str) -> None:
    """Exit code 2, and the next step in the sentence."""
    done = reprobot("reproduce", str(EXAMPLES / "equal-on-bool-tensors.md"), *options)
    assert done.returncode == 2
    assert says in only_sentence(done)


def test_an_issue_without_code_is_a_verdict(tmp_path: Path) -> None:
    """Exit code 0: a verdict was reached, and nothing was run for it."""
    out = tmp_path / "out.json"
    done = reprobot("reproduce", "-", "--json", str(out), stdin=b"# bfloat16 fails\n\nIt crashes.\n")
    assert done.returncode == 0, done.stderr
    document = json.loads(out.read_text())
    assert document["verdict"]["kind"] == "no-repro"
    assert document["repro"] is None
    assert document["observations"] == []


def test_two_unrelated_repros_are_not_guessed_between(tmp_path: Path) -> None:
    """Either the one that the report speaks of is taken, or it is said that it can't be told."""
    issue = tmp_path / "two.md"
    issue.write_text(
        "# Two problems\n\nFirst:\n\n```python\nimport tvm\nfrom tvm import relax\nx = relax.Var('x')\n"
        "print(relax.op.add(x, x))\n```\n\nAnd, unrelated:\n\n```python\nimport iree.compiler as c\n"
        "print(c.compile_str('module {}', target_backends=['vmvx']))\n```\n"
    )
    done = reprobot("extract", str(issue))
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["repro"] is None or len(document["repro"]["files"]) == 1


def test_an_incomplete_issue_names_what_is_missing(tmp_path: Path) -> None:
    """The comment asks for exactly that."""
    out = tmp_path / "comment.md"
    done = reprobot("reproduce", str(EXAMPLES / "encoder-config-not-included.md"), "--comment", str(out))
    assert done.returncode == 0, done.stderr
    comment = out.read_text()
    assert comment.startswith("**Incomplete")
    assert "configs/tiny.json" in comment


def test_an_output_that_cannot_be_written_is_said_so() -> None:
    """Exit code 2: the caller named a bad place."""
    done = reprobot("extract", str(EXAMPLES / "equal-on-bool-tensors.md"), "--json", "/nonexistent/dir/x.json")
    assert done.returncode == 2
    assert "cannot be written" in only_sentence(done)


def test_extract_gives_the_parts_of_the_contract() -> None:
    """Repro, missing and claim; nothing is run."""
    done = reprobot("extract", str(EXAMPLES / "dense-resource-constant-crash.md"))
    document = json.loads(done.stdout)
    assert document["schema"] == 1
    assert document["repro"]["kind"] == "command-line"
    assert document["repro"]["steps"][0][0] == "iree-compile"
    assert document["claim"]["kind"] == "crash"
    assert document["missing"] == []


def test_an_unknown_option_shows_the_usage() -> None:
    """Exit code 2, as any command line tool."""
    assert reprobot("reproduce", "--frobnicate", "x.md").returncode == 2


def test_clean_empties_the_cache_or_trims_it(tmp_path: Path) -> None:
    """An empty cache is no error either."""
    for options in ((), ("--keep", "1")):
        done = reprobot("clean", *options, REPROBOT_CACHE=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))
        assert done.returncode == 0, done.stderr
        assert "freed 0 MiB" in done.stdout


def test_suspects_of_a_range_as_text_and_as_json(tmp_path: Path) -> None:
    """From a clone on disk, by tag or release; the document has the range and at most five commits."""
    repository = make_repository(tmp_path / "clone")
    repository.commit("Start", "a.txt", day="2024-06-01")
    repository.git("tag", "v0.1")
    for number in range(6):
        repository.commit(f"Add operator {number}", f"src/op{number}.cc", day="2024-08-01")
    right = repository.commit("[Relax] Tuples in RemoveUnusedOutputs", "src/outputs.cc", day="2024-08-02")
    repository.commit("Describe RemoveUnusedOutputs", "docs/outputs.md", day="2024-08-03")
    issue, out = EXAMPLES / "unused-outputs-replaced-by-nan.md", tmp_path / "out.json"
    span = ("--from", "0.1", "--to", "main")
    done = reprobot(
        "suspects", str(issue), "--toolchain", "tvm", *span, "--history", str(repository.path), "--json", str(out)
    )
    assert done.returncode == 0, done.stderr
    assert "One of 8 commits" in done.stdout
    document = json.loads(out.read_text())
    assert list(document) == ["schema", "untrusted", "range", "suspects"]
    assert document["suspects"][0]["commit"] == right
    assert len(document["suspects"]) <= 5


def test_suspects_of_the_configured_history(tmp_path: Path) -> None:
    """Without ``--history`` the repository that the configuration names is read."""
    repository = make_repository(tmp_path / "clone")
    repository.commit("Start", "a.txt", day="2024-06-01")
    right = repository.commit("[Relax] Tuples in RemoveUnusedOutputs", "src/outputs.cc", day="2024-08-02")
    config, out = tmp_path / "config.toml", tmp_path / "out.json"
    config.write_text(f'[[builds]]\ntoolchain = "tvm"\nrepository = "{repository.path}"\n')
    issue = str(EXAMPLES / "unused-outputs-replaced-by-nan.md")
    span = ("--from", "main~1", "--to", "main")
    done = reprobot("suspects", issue, "--toolchain", "tvm", *span, "--json", str(out), REPROBOT_CONFIG=str(config))
    assert done.returncode == 0, done.stderr
    assert [one["commit"] for one in json.loads(out.read_text())["suspects"]] == [right]
