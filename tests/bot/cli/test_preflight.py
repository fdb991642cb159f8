"""Each misuse ends in one clear sentence before the first run, and no fault of an output loses a verdict."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path
from typing import Any, cast

import pytest

from bot.cli.daemon import check_repository
from bot.cli.preflight import check_cache, check_outputs, check_results
from bot.cli.verbs import check_order, find_suspects
from bot.forge.source import read_source
from bot.report.files import Outputs, save_report
from bot.suspects.ranges import CommitHistory
from runners.core.errors import InfraError, UserError
from runners.core.packages.catalogue import load_catalogue
from runners.sandbox import select
from tests.bot.report import reports

TODAY = date(2026, 1, 1)


def refuse_fetch(repository: str, number: int) -> Any:
    raise AssertionError("fetched")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("https://gitlab.com/octo/compiler/-/issues/3", "is not on github.com: save the issue's text to a file"),
        ("https://gitlab.com/octo/compiler/issues/3", "is not on github.com"),
        ("https://github.com.evil.example/octo/compiler/issues/3", "is not on github.com"),
        ("http://bugs.example/3", "is not on github.com"),
        ("https://github.com/octo/compiler/pull/12", "is a pull request: name an issue, as octo/compiler#N"),
        ("https://github.com/octo/compiler/pull/12/files#diff", "is a pull request"),
        ("https://github.com/octo/compiler", "is no issue's address: give https://github.com/OWNER/REPO/issues/N"),
        ("https://github.com/octo/compiler/discussions/4", "is no issue's address"),
        ("github.com/octo/compiler/pull/12", "is a pull request"),
        ("octo/compiler", "add an issue's number, octo/compiler#N"),
        ("no/such/file.md", "there is no file no/such/file.md: give a Markdown file"),
        ("octo.compiler/issues.md", "there is no file"),
        ("octo/compiler#0", "there is no file octo/compiler#0: give a Markdown file, '-', owner/repo#N"),
        ("https://github.com/octo/compiler/issues/0", "is no issue's address"),
    ],
)
def test_an_address_that_names_no_issue_is_explained(source: str, says: str) -> None:
    """No request is sent: a path on another host must not name a repository on GitHub."""
    with pytest.raises(UserError) as raised:
        read_source(source, today=TODAY, fetch=refuse_fetch)
    assert says in str(raised.value)


def test_the_host_is_the_forges() -> None:
    """On a GitHub Enterprise Server, an address of github.com is another forge's."""
    asked = []

    def fetch(repository: str, number: int) -> Any:
        asked.append((repository, number))

    read_source("https://git.example/octo/compiler/issues/3", today=TODAY, fetch=fetch, host="git.example")
    assert asked == [("octo/compiler", 3)]
    with pytest.raises(UserError, match=r"is not on git\.example"):
        read_source("https://github.com/a/b/issues/3", today=TODAY, fetch=refuse_fetch, host="git.example")


@pytest.mark.parametrize("own", [0, 1])
def test_swapped_ends_of_a_range_are_put_right(own: int) -> None:
    """In the releases to run, and in the commits to rank: also if the older release has commits of its own branch."""
    with pytest.raises(UserError, match=r"write the older version first, 0\.25\.0\.\.0\.27\.0"):
        load_catalogue().select("tvm", "0.27.0..0.25.0")

    class History:
        def between(self, start: str, end: str) -> tuple[str, ...]:
            return ("a commit",) * (3 if (start, end) == ("old", "new") else own)

        def day(self, revision: str) -> date:
            return date(2026, 5 if revision == "old" else 6, 1)

        def resolve(self, revision: str) -> str:
            return revision

    with pytest.raises(UserError, match="write --from old --to new"):
        find_suspects(
            reports.issue(),
            toolchain="tvm",
            start="new",
            end="old",
            catalogue=load_catalogue(),
            history=cast(CommitHistory, History()),
        )


def test_outputs_are_checked_without_a_trace(tmp_path: Path) -> None:
    check_outputs(None, tmp_path / "new.json")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UserError, match="is a folder: name a file in it"):
        check_outputs(tmp_path)
    with pytest.raises(UserError, match=r"there is no folder .*; make it first"):
        check_outputs(tmp_path / "no" / "x.json")


def test_a_file_system_that_takes_no_files_is_noticed_before_the_first_run() -> None:
    """Permissions do not tell: to root, each file of /proc is writable."""
    with pytest.raises(UserError, match=r"/proc/x\.json cannot be written .*name another file"):
        check_outputs(Path("/proc/x.json"))
    with pytest.raises(UserError, match=r"/proc/results cannot be written .*name another folder"):
        check_results(Path("/proc/results"))


def test_a_range_without_an_end_says_what_it_lacks() -> None:
    with pytest.raises(UserError, match=r"the range 0\.26\.0\.\. lacks an end: write A\.\.B"):
        load_catalogue().select("tvm", "0.26.0..")


def test_swapped_releases_are_noticed_before_the_history_is_cloned() -> None:
    with pytest.raises(UserError, match=r"write --from 0\.25\.0 --to 0\.27\.0"):
        check_order("tvm", "0.27.0", "0.25.0", load_catalogue())
    check_order("tvm", "0.25.0", "0.27.0", load_catalogue())
    check_order("tvm", "main", "0.25.0", load_catalogue())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("https://gitlab.com/a/b", "is no repository, but an address: give OWNER/REPO"),
        ("no/such/folder", "is no repository, and no folder is there: give OWNER/REPO"),
        ("tvm", "'tvm' is no repository: give OWNER/REPO"),
    ],
)
def test_a_text_that_names_no_repository_is_explained(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        check_repository(text)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_outputs_without_permission_are_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UserError, match="permission denied"):
        check_outputs(tmp_path / "x.json")


def test_a_cache_that_cannot_be_written_is_named_with_the_next_step(tmp_path: Path) -> None:
    check_cache(tmp_path / "new" / "cache")
    (tmp_path / "file").write_text("")
    with pytest.raises(InfraError, match=r"the cache .* cannot be written .*: set REPROBOT_CACHE"):
        check_cache(tmp_path / "file" / "cache")


def test_an_output_that_fails_late_loses_no_verdict(tmp_path: Path) -> None:
    """The other files are written, and the text is in a file that the message names."""
    outputs = Outputs(json=tmp_path / "no" / "x.json", comment=tmp_path / "c.md")
    written = save_report(reports.regression(), outputs)
    assert (tmp_path / "c.md").read_text(encoding="utf-8") == written.comment
    (problem,) = written.problems
    rescued = Path(problem.rpartition(" is in ")[2])
    assert '"verdict"' in rescued.read_text(encoding="utf-8")
    rescued.unlink()


def test_no_message_names_the_unsafe_engine_without_its_risk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select, "list_sandboxes", tuple)
    with pytest.raises(UserError, match="without any protection, with all your rights") as raised:
        select.select_engine("auto")
    assert "--sandbox none" in str(raised.value)
