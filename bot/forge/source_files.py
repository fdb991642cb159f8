"""Find the files of the compiler's own repository that a report names: ``iree-compile tests/e2e/math/abs.mlir``.

No release contains them. They are read at the tag or the commit that the report names, else at the newest commit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bot.extract.links import GITHUB, Link, cut_at_folder
from bot.extract.types import SOURCE_SCRIPT, Extraction, Missing, Repro
from bot.issue import Issue
from runners.core.packages.versions import parse_version
from runners.core.protocol import Claim
from runners.toolchains import find_toolchain

MAX_TEXT = 200_000
"""Characters of a report in which paths are looked for."""
MAX_FILES = 3
_FILE = re.compile(r"[\w+-][\w.+-]{0,190}\.(?:py|mlir)")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_NEWEST = "HEAD"


def list_source_links(issue: Issue, found: Extraction, forge: str = GITHUB) -> tuple[Link, ...]:
    """Return the addresses of the missing parts that are files of the compiler's repository.

    Empty on another forge than GitHub, where the compiler's repository is not known.
    """
    toolchain = found.testcase.toolchain if isinstance(found, Repro) else found.toolchain
    if forge != GITHUB or toolchain is None:
        return ()
    home = find_toolchain(toolchain)
    if home.REPOSITORY is None:
        return ()
    at = f"https://raw.githubusercontent.com/{home.REPOSITORY}/{_choose_commit(found.claim, toolchain)}"
    text = issue.body[:MAX_TEXT]
    paths = [path for gap in found.missing for path in _find_path(gap, text, home.REPORTS.source_folders)]
    return tuple(Link(name=path.rpartition("/")[2], url=f"{at}/{path}") for path in dict.fromkeys(paths))[:MAX_FILES]


def _choose_commit(claim: Claim, toolchain: str) -> str:
    for version in claim.versions:
        if _COMMIT.fullmatch(version):
            return version
        parsed = parse_version(version)
        if parsed is not None and len(parsed.release) > 2:  # `3.6` may be any of several
            return find_toolchain(toolchain).find_tag(version) or _NEWEST
    return _NEWEST


def _find_path(gap: Missing, text: str, folders: Sequence[str]) -> Iterator[str]:
    """Yield the path of a missing part below the root of the repository, if the text names one of its folders."""
    name = gap.name.rpartition("/")[2]
    if gap.kind not in ("file", SOURCE_SCRIPT) or not _FILE.fullmatch(name):
        return
    for found in re.finditer(
        rf"(?<![\w.+-])((?:[\w.+~-]{{1,100}}/){{1,20}}){re.escape(name)}(?![\w/-])", text, re.ASCII
    ):
        path = cut_at_folder(f"{found[1]}{name}", folders)
        if path and ".." not in path:
            yield path
            return
