"""To the commit, on a real git repository with a package built from each commit asked for; and along nightlies.

Every scenario goes from the issue's text to the document, through the command line, builds and runs in the sandbox.
"""

from __future__ import annotations

import functools
import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.flow.planted import BAD, BUILD, COMMAND, FLAKY, GOOD, ISSUE, Planted, configuration, plant
from tests.flow.test_command_line import reprobot

pytestmark = [pytest.mark.sandbox]

COMMITS = 60
CULPRIT = 37
FEW = 20
"""Commits where the length of the search shows nothing."""
LATE = 13


def bisect(
    folder: Path, planted: Planted, *ends: str, more: str = COMMAND, options: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The document of ``reprobot bisect``; ``ends`` are the good one and the bad one."""
    (folder / "issue.md").write_text(ISSUE)
    out = folder / "out.json"
    done = reprobot(
        *("bisect", str(folder / "issue.md"), "--toolchain", "python", "--allow", "tinycalc"),
        *("--good", ends[0], "--bad", ends[1], "--json", str(out), *options),
        REPROBOT_CONFIG=str(configuration(folder, planted.path, more=more)),
        REPROBOT_CACHE=str(folder / "cache"),
        UV_NO_INDEX="1",
    )
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(out.read_text())
    return document


def bad_from(first: int, body: str = BAD) -> Callable[[int], str]:
    return lambda number: body if number >= first else GOOD


def test_a_planted_regression_is_found_to_the_commit(tmp_path: Path) -> None:
    """210 commits, a steady failure: that commit and no other, with both sides seen twice."""
    planted = plant(tmp_path, 210, body=bad_from(137))
    document = bisect(tmp_path, planted, "v1.0", "v2.0")
    found = document["bisection"]
    assert found["culprit"] == planted.main[137]
    assert (found["commits"]["from"], found["commits"]["count"]) == (planted.main[136], 1)
    assert document["verdict"]["kind"] == "regression"
    assert planted.main[137] in document["comment"]
    assert found["probes"] <= 20 + 2 * 13


def test_a_failure_in_half_of_the_runs_is_found_to_the_commit(tmp_path: Path) -> None:
    """That commit and no other; plain bisection would be wrong in nine of ten such histories.

    Of a hundred searches about one names another commit and two refuse, as the bad end hardly failed in its first
    runs: after a miss it is tried again, three times in all. Nothing but chance is left out by that.
    """
    planted = plant(tmp_path, COMMITS, body=bad_from(CULPRIT, FLAKY))
    for _ in range(3):
        document = bisect(tmp_path, planted, "v1.0", "v2.0")
        if (document["bisection"] or {}).get("culprit") == planted.main[CULPRIT]:
            break
    found = document["bisection"]
    assert found["culprit"] == planted.main[CULPRIT]
    assert (found["commits"]["from"], found["commits"]["count"]) == (planted.main[CULPRIT - 1], 1)
    assert document["verdict"]["kind"] == "regression"


def test_where_builds_are_missing_the_answer_is_exactly_that_range(tmp_path: Path) -> None:
    """Sixteen commits that don't build hide the one: the range ends with the builds on both sides of them."""
    planted = plant(
        tmp_path, COMMITS, body=bad_from(CULPRIT), broken=lambda number: CULPRIT - 7 <= number < CULPRIT + 9
    )
    found = bisect(tmp_path, planted, "v1.0", "v2.0")["bisection"]
    assert found["commits"]["from"] == planted.main[CULPRIT - 8]
    assert found["commits"]["to"] == planted.main[CULPRIT + 9]
    assert found["culprit"] is None
    assert len(found["skipped"]) >= 10


def test_a_fix_is_found_to_the_commit(tmp_path: Path) -> None:
    """The bad end is the older one."""
    planted = plant(tmp_path, FEW, body=lambda number: GOOD if number >= LATE else BAD)
    document = bisect(tmp_path, planted, "v2.0", "v1.0")
    assert document["bisection"]["direction"] == "fixed"
    assert document["bisection"]["culprit"] == planted.main[LATE]
    assert document["verdict"]["kind"] == "fixed"


def test_after_a_revert_one_true_change_is_found(tmp_path: Path) -> None:
    """Bad from 4, mended at 9, bad again from 13: each found edge is a real one, never a commit between."""
    planted = plant(tmp_path, FEW, body=lambda number: BAD if 4 <= number < 9 or number >= LATE else GOOD)
    found = bisect(tmp_path, planted, "v1.0", "v2.0")["bisection"]
    assert found["culprit"] in (planted.main[4], planted.main[LATE])


def test_where_runs_show_a_revert_it_is_said(tmp_path: Path) -> None:
    """Every other commit was reverted in the newer half: the search meets it, says so, and names a true change."""
    planted = plant(
        tmp_path, 40, body=lambda number: BAD if (number >= 20 and number % 2 == 1) or number == 39 else GOOD
    )
    found = bisect(tmp_path, planted, "v1.0", "v2.0")["bisection"]
    last, first = (
        next(n for n, sha in enumerate(planted.main) if sha == found["commits"][end]) for end in ("from", "to")
    )
    assert first > last >= 20 - 1
    assert any("changes more than once" in note for note in found["notes"])


def test_a_release_from_a_branch_of_its_own_is_no_point_between(tmp_path: Path) -> None:
    """v1.1 left main at 5 and took over 9: the search runs along main from 5, and 9 is no suspect."""
    planted = plant(tmp_path, FEW, body=bad_from(LATE), backport=(5, 9, "v1.1"))
    found = bisect(tmp_path, planted, "v1.1", "v2.0")["bisection"]
    assert found["culprit"] == planted.main[LATE]
    assert any("v1.1 is on a branch of its own (2 commits)" in note for note in found["notes"])


def test_an_end_that_does_not_fail_is_said_so(tmp_path: Path) -> None:
    """Nothing between is run: the ends come first."""
    planted = plant(tmp_path, 30, body=lambda number: GOOD)
    document = bisect(tmp_path, planted, "v1.0", "v2.0")
    assert document["verdict"]["kind"] == "inconclusive"
    assert "the bad end does not fail as reported" in document["verdict"]["headline"]
    assert document["bisection"] is None
    assert len({seen["version"] for seen in document["observations"]}) == 2


def test_wheels_stored_for_each_commit_are_found(tmp_path: Path) -> None:
    """A folder per commit, one in four missing: the range ends where builds are."""
    planted = plant(tmp_path, FEW, body=bad_from(11))
    for number, commit in enumerate(planted.main):
        if number % 4 != 2:
            store_wheel(tmp_path / "ci" / commit, version=f"1.0.{number}", body=BAD if number >= 11 else GOOD)
    found = bisect(tmp_path, planted, "v1.0", "v2.0", more=f'artifacts = ["{tmp_path}/ci/{{commit}}"]\n')["bisection"]
    assert found["commits"]["from"] == planted.main[9]
    assert found["commits"]["to"] == planted.main[11]
    assert found["culprit"] is None


def store_wheel(folder: Path, *, version: str, body: str) -> None:
    """The package's own build, run on files written by hand."""
    sources = folder.parent / "sources"
    (sources / "tinycalc").mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True)
    for name, text in {"VERSION": version, "build.py": BUILD, "tinycalc/__init__.py": body}.items():
        (sources / name).write_text(text)
    subprocess.run([sys.executable, "build.py", str(folder)], cwd=sources, check=True)


PARTIAL = COMMAND + 'over = "what was compiled for tinycalc 2.0"\nas_of = 2026-01-01\n'


def test_a_change_in_the_part_that_builds_share_is_blamed_on_no_commit(tmp_path: Path) -> None:
    """The releases differ, the builds of the commits do not: their ends are built too, and that is what is said."""
    planted = plant(tmp_path, 5, body=lambda number: GOOD)
    for version, body in (("1.0", GOOD), ("2.0", BAD)):
        store_wheel(tmp_path / "released" / version, version=version, body=body)
    pages = "".join(
        f'\n[[wheels]]\ntoolchain = "python"\nfolder = "{tmp_path}/released/{version}"\npackages = ["tinycalc"]\n'
        for version in ("1.0", "2.0")
    )
    document = bisect(tmp_path, planted, "1.0", "2.0", more=PARTIAL + pages)
    assert document["bisection"] is None
    assert document["verdict"]["kind"] == "inconclusive"
    assert "every build has what was compiled for tinycalc 2.0" in document["verdict"]["headline"]
    assert not {"1.0", "2.0"} & {seen["version"] for seen in document["observations"]}


def test_of_partial_builds_the_answer_says_what_they_share(tmp_path: Path) -> None:
    """To the commit, with the words of the configuration beside it."""
    planted = plant(tmp_path, 5, body=bad_from(3))
    found = bisect(tmp_path, planted, "v1.0", "v2.0", more=PARTIAL)["bisection"]
    assert found["culprit"] == planted.main[3]
    assert any("what was compiled for tinycalc 2.0" in note for note in found["notes"])


# ------------------------------------------------------------------------------------------- nightlies


@pytest.fixture
def index(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and the address under which it is served on loopback, listings included."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def test_along_an_index_of_nightlies(tmp_path: Path, index: tuple[Path, str]) -> None:
    """Wheels with rising dev versions, each of a commit that its version names: to the nightly, and its commits."""
    folder, address = index
    planted = plant(tmp_path, COMMITS, body=bad_from(CULPRIT))
    nightlies = range(0, COMMITS, 5)
    for number in nightlies:
        version = f"2.0.dev{20260101 + number}+g{planted.main[number][:10]}"
        store_wheel(tmp_path / "built" / str(number), version=version, body=BAD if number >= CULPRIT else GOOD)
        (wheel,) = (tmp_path / "built" / str(number)).glob("*.whl")
        wheel.rename(folder / wheel.name)
    more = f'\n[[wheels]]\ntoolchain = "python"\npage = "{address}"\npackages = ["tinycalc"]\n'
    ends = [f"2.0.dev{20260101 + number}+g{planted.main[number][:10]}" for number in (0, nightlies[-1])]
    found = bisect(tmp_path, planted, *ends, more=more)["bisection"]
    older, newer = max(n for n in nightlies if n < CULPRIT), min(n for n in nightlies if n >= CULPRIT)
    assert found["last_good"].startswith(f"2.0.dev{20260101 + older}")
    assert found["first_bad"].startswith(f"2.0.dev{20260101 + newer}")
    assert found["commits"] == {
        "from": planted.main[older],
        "to": planted.main[newer],
        "count": newer - older,
        "compare_url": None,
    }
