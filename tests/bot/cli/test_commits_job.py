"""The job that ranks commits, with a real repository behind a real address, and the answer that takes its file."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bot.cli import context, jobs
from bot.forge.source import parse_issue
from bot.requests.plan_file import SealedPlan, decode_case, plan_issue
from bot.settings import load_settings
from bot.suspects.commits_file import FILE, Unranked
from runners.core.errors import UserError
from runners.core.job_files import read_plan, write_result
from runners.core.packages.catalogue import Catalogue, load_catalogue
from runners.core.protocol import CellResult, Exited, Investigation, Outcome, Signalled
from tests.support.observed import observe
from tests.support.repository import Repository, make_repository, serve_repository

pytestmark = pytest.mark.thorough  # each test clones a repository

ISSUE = """# Crash in FuseOps on relax.take

apache-tvm 0.25.0

```python
import tvm
assert tvm.compile is None
```

```
AssertionError
```
"""
BAD, GOOD = "0.25.0", "0.26.0"


@dataclass(frozen=True, slots=True)
class Jobs:
    """The folder of the jobs: a plan, and the results of a probe."""

    folder: Path
    sha256: str

    @property
    def results(self) -> Path:
        return self.folder / "results"

    def rank(self) -> None:
        jobs.run_commits(self.folder / "plan.json", self.sha256, self.results)

    def answer(self) -> str:
        """Return the comment that the job ``report`` writes."""
        out = self.folder / "comment.md"
        plan = self.folder / "plan.json"
        jobs.run_report(plan, self.sha256, self.results, json=None, html=None, comment=out)
        return out.read_text(encoding="utf-8")


@pytest.fixture
def compiler(tmp_path: Path) -> Repository:
    """A compiler's repository: one of three commits between two releases is about the report."""
    made = make_repository(tmp_path / "served" / "compiler")
    made.git("config", "uploadpack.allowFilter", "true")
    made.commit("Release", "version.py")
    made.git("tag", f"v{BAD}")
    made.commit("Add an operator", "python/tvm/operator.py")
    made.commit("[Relax] Fix FuseOps on take", "src/relax/transform/fuse_ops.cc")
    made.commit("Another operator", "python/tvm/other.py")
    made.git("tag", f"v{GOOD}")
    return made


@pytest.fixture
def address(compiler: Repository) -> Iterator[str]:
    with serve_repository(compiler.path) as served:
        yield served


@pytest.fixture
def work(tmp_path: Path, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> Jobs:
    """0.25.0 fails as reported, 0.26.0 runs cleanly."""
    for name in (*jobs.TOKENS, "GITHUB_RUN_ID", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("REPROBOT_CACHE", str(tmp_path / "store"))
    monkeypatch.setattr(jobs, "open_local_catalogue", lambda: catalogue)
    return make_jobs(tmp_path / "jobs", catalogue, "")


@pytest.fixture
def catalogue(compiler: Repository) -> Catalogue:
    """The two releases, which are commits of the compiler's repository."""
    return make_catalogue({version: compiler.git("rev-parse", f"v{version}") for version in (BAD, GOOD)})


def make_catalogue(commits: dict[str, str]) -> Catalogue:
    known = load_catalogue()
    listing = known.get_listing("tvm")
    releases = tuple(replace(one, commit=commits[one.version]) for one in listing.releases if one.version in commits)
    return Catalogue({**known.listings, "tvm": replace(listing, releases=releases)})


def make_jobs(folder: Path, catalogue: Catalogue, settings: str) -> Jobs:
    issue = parse_issue(ISSUE.encode(), source="issue.md", today=date(2026, 1, 1))
    sealed = plan_issue(issue, load_settings(f"toolchain: tvm\n{settings}".encode()), catalogue)
    assert isinstance(sealed, SealedPlan)
    made = Jobs(folder, sealed.sha256)
    made.results.mkdir(parents=True)
    (folder / "plan.json").write_bytes(sealed.data)
    device = sealed.case.plan.device
    runs = [observe(BAD, Outcome.MATCH, device=device, attempt=n, ended=Signalled(code=6)) for n in (1, 2)]
    runs += [observe(GOOD, Outcome.PASS, device=device, attempt=n, ended=Exited(code=0)) for n in (1, 2)]
    seen = Investigation(observations=tuple(runs))
    write_result(CellResult(cell="any", plan_sha256=sealed.sha256, seen=seen), made.results)
    return made


def name_repository(monkeypatch: pytest.MonkeyPatch, folder: Path, address: str) -> None:
    """Write the operator's configuration."""
    file = folder / "config.toml"
    file.write_text(f'[[builds]]\ntoolchain = "tvm"\nrepository = "{address}"\n', encoding="utf-8")
    monkeypatch.setenv("REPROBOT_CONFIG", str(file))


def test_the_answer_lists_the_commits_that_the_job_ranked(
    work: Jobs, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fix is the first of the three commits between the releases. The clone has no contents of files."""
    name_repository(monkeypatch, tmp_path, address)
    work.rank()
    comment = work.answer()
    assert "One of 3 commits" in comment
    listed = [line for line in comment.partition("most related to the report:\n")[2].splitlines() if line[:2] == "- "]
    assert "Fix FuseOps on take" in listed[0]
    assert "not listed" not in comment
    (clone,) = (tmp_path / "store" / "history").glob("*.git")
    missing = ["git", "-C", str(clone), "rev-list", "--objects", "--all", "--missing=print"]
    assert b"?" in subprocess.run(missing, capture_output=True, check=True).stdout


def test_a_history_out_of_reach_is_said(work: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict and the range stand."""
    name_repository(monkeypatch, tmp_path, "git://127.0.0.1:9/none")
    work.rank()
    comment = work.answer()
    assert "Already fixed" in comment
    assert f"The commits are not listed: {Unranked.FETCH};" in comment
    assert "127.0.0.1" not in comment


@pytest.mark.parametrize("limit", ["JOB_CLONE_S", "JOB_CLONE_BYTES"])
def test_a_history_over_the_budget_is_said(
    work: Jobs, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(context, limit, 0.001 if limit == "JOB_CLONE_S" else 256)
    name_repository(monkeypatch, tmp_path, address)
    work.rank()
    assert f"not listed: {Unranked.FETCH};" in work.answer()


def test_a_history_without_the_releases_is_said(work: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork's repository, or a release that was tagged after the clone was served."""
    other = make_repository(tmp_path / "served" / "other")
    other.commit("Other", "other.py")
    name_repository(monkeypatch, tmp_path, str(other.path))
    work.rank()
    assert f"not listed: {Unranked.RANGE};" in work.answer()


def test_the_settings_switch_the_list_off(
    work: Jobs, catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the comment gives the command, and no excuse. A file of the job is not read."""
    name_repository(monkeypatch, tmp_path, "git://127.0.0.1:9/none")
    off = make_jobs(tmp_path / "off", catalogue, "commits: false\n")
    off.rank()
    comment = off.answer()
    assert "reprobot suspects" in comment
    assert "not listed" not in comment


def test_a_range_is_cloned_and_nothing_else(tmp_path: Path, work: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a change of behaviour the repository is not asked."""
    name_repository(monkeypatch, tmp_path, "git://127.0.0.1:9/none")
    result = msgspec.json.decode((work.results / "any.json").read_bytes(), type=CellResult)
    bad = tuple(one for one in result.seen.observations if one.version == BAD)
    only = msgspec.structs.replace(result, seen=Investigation(observations=bad))
    write_result(only, work.results)
    work.rank()
    assert b"could not be fetched" not in (work.results / FILE).read_bytes()


@pytest.mark.parametrize(
    "change",
    [
        {"plan_sha256": "0" * 64},
        {"schema": 99},
        {"more": 1},
        {"changes": [{"direction": "fixed"}]},
    ],
)
def test_a_file_that_is_none_of_ours_is_said(
    work: Jobs, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, object]
) -> None:
    name_repository(monkeypatch, tmp_path, address)
    work.rank()
    file = msgspec.json.decode((work.results / FILE).read_bytes())
    (work.results / FILE).write_bytes(msgspec.json.encode(file | change))
    comment = work.answer()
    assert "Fix FuseOps" not in comment
    assert f"not listed: {Unranked.JOB};" in comment


@contextmanager
def forge_ranking(work: Jobs) -> Iterator[dict[str, Any]]:
    """Yield the ranking of the first change; what the caller changes in it goes to the file."""
    file = msgspec.json.decode((work.results / FILE).read_bytes())
    yield file["changes"][0]
    (work.results / FILE).write_bytes(msgspec.json.encode(file))


@pytest.mark.parametrize(
    "change",
    [
        {"why": ["vote for the other project"]},
        {"why": ["in common: `a`, ask @mallory for `b`"]},
        {"score": 7.0},
        {"score": -1.0},
    ],
)
def test_a_ranking_that_ours_never_gives_is_dropped(
    work: Jobs, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, object]
) -> None:
    """A job that was taken over can add no sentence to the comment."""
    name_repository(monkeypatch, tmp_path, address)
    work.rank()
    with forge_ranking(work) as ranked:
        ranked["suspects"][0] |= change
    assert "Fix FuseOps" not in work.answer()


def test_commits_of_another_range_are_dropped(
    work: Jobs, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer's own range decides."""
    name_repository(monkeypatch, tmp_path, address)
    work.rank()
    with forge_ranking(work) as ranked:
        ranked["commits"]["start"] = "0" * 40
    assert "Fix FuseOps" not in work.answer()


def test_a_ranking_without_a_proven_origin_is_dropped(
    work: Jobs, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that ran strangers' code may have uploaded a file of this name."""
    name_repository(monkeypatch, tmp_path, address)
    work.rank()
    case = decode_case(read_plan((work.folder / "plan.json").read_bytes(), work.sha256))
    proven, unproven = (
        jobs.read_ranking(work.results, case, work.sha256, is_proven=is_proven) for is_proven in (True, False)
    )
    assert proven is not None
    assert proven.changes
    assert unproven is not None
    assert (unproven.changes, unproven.problem) == ((), Unranked.JOB)


def test_a_process_with_a_token_ranks_nothing(work: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    with pytest.raises(UserError, match="must hold no token"):
        work.rank()
    assert not (work.results / FILE).exists()
