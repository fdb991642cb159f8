"""Regenerate runners/toolchains/iree/flags.json: which flags each release of IREE's tools knows, by their own help.

Usage: python -m bench.surveys.flags [--check]

Every release runs in the sandbox. Of the compiler's thousands of flags, IREE's own and those of MLIR are kept. The
flags of IREE that all releases have, and those of MLIR, are a list of their own. ``--check`` writes nothing and exits
1 when the committed table differs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from runners.core.packages.catalogue import Release, load_catalogue
from runners.core.protocol import Exited, Limits, Testcase, TestcaseKind
from runners.environments.store import Store, open_store
from runners.probe.layout import make_layout, make_task
from runners.probe.run import run_probe
from runners.sandbox.contract import Engine
from runners.sandbox.owner import make_name
from runners.sandbox.select import select_engine
from runners.toolchains import iree

TABLE = Path(iree.__file__).parent / "flags.json"

LIST_FLAGS = r"""
import re, subprocess, sys
site = next(path for path in sys.path if path.endswith("site-packages"))
program, option, prefix = sys.argv[1:]
said = subprocess.run([f"{site}/{program}", option], capture_output=True, text=True).stdout
names = re.findall(r"^ *--?([A-Za-z][A-Za-z0-9_.-]*)", said, re.MULTILINE)
print(*sorted({name for name in names if name.startswith(tuple(prefix.split(",")))}))
"""

TOOLS = {
    "iree-compile": ("iree/compiler/_mlir_libs/iree-compile", "--help-list-hidden", "iree,mlir"),
    "iree-opt": ("iree/compiler/_mlir_libs/iree-opt", "--help-list-hidden", "iree,mlir"),
    "iree-run-module": ("iree/_runtime_libs/iree-run-module", "--help", ""),
}

Span = tuple[str | None, str | None]


def flags(release: Release, tool: str, store: Store, engine: Engine) -> frozenset[str]:
    """What one release's tool says it knows."""
    environment = store.get_environment(release)
    testcase = Testcase(
        kind=TestcaseKind.PYTHON,
        toolchain="iree",
        files={"list_flags.py": LIST_FLAGS},
        steps=(("python", "list_flags.py", *TOOLS[tool]),),
    )
    task = make_task(environment, testcase, Limits())
    seen = run_probe(engine, make_layout(environment), task, run_id=make_name())
    names = frozenset(f"--{name}" for name in seen.steps[-1].stdout.split())
    if seen.ended != Exited(code=0) or not names or seen.steps[-1].truncated:
        raise SystemExit(f"{tool} of {release.version} does not list its flags: {seen.ended}")
    return names


def span(present: list[bool], versions: list[str]) -> Span:
    """First version with it and first without it again; None at the ends of what there is."""
    first = present.index(True)
    after = len(present) - present[::-1].index(True)
    if not all(present[first:after]):
        raise SystemExit("a flag came, went and came back: the table cannot say that")
    return (versions[first] if first else None, versions[after] if after < len(versions) else None)


def survey() -> str:
    """The table as it is committed."""
    releases = load_catalogue().list_releases("iree")
    versions = [release.version for release in releases]
    store, engine = open_store(), select_engine("auto")
    tools, others = {}, {}
    for tool in TOOLS:
        lists = [flags(release, tool, store, engine) for release in releases]
        every = {flag: [flag in known for known in lists] for flag in sorted(frozenset().union(*lists))}
        own = {flag: present for flag, present in every.items() if not flag.startswith("--mlir")}
        tools[tool] = {flag: span(present, versions) for flag, present in own.items() if not all(present)}
        others[tool] = [flag for flag, present in every.items() if flag not in tools[tool]]
    return render(versions, tools, others)


def render(versions: list[str], tools: dict[str, dict[str, Span]], others: dict[str, list[str]]) -> str:
    """One flag a line, so that a new release makes a small difference."""
    blocks = (
        f"  {json.dumps(tool)}: {{\n"
        + ",\n".join(f"   {json.dumps(flag)}: {json.dumps(ends)}" for flag, ends in known.items())
        + "\n  }"
        for tool, known in tools.items()
    )
    lists = (
        f"  {json.dumps(tool)}: [\n" + ",\n".join(f"   {json.dumps(flag)}" for flag in known) + "\n  ]"
        for tool, known in others.items()
    )
    ends = f' "first": "{versions[0]}",\n "last": "{versions[-1]}",\n'
    spans = ' "tools": {\n' + ",\n".join(blocks) + "\n },\n"
    return "{\n" + ends + spans + ' "others": {\n' + ",\n".join(lists) + "\n }\n}\n"


def main() -> int:
    table = survey()
    if "--check" in sys.argv[1:]:
        return int(table != TABLE.read_text(encoding="utf-8"))
    TABLE.write_text(table, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
