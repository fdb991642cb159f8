"""Regenerate runners/toolchains/tvm/names.json: since when and until when each name of TVM's Python API was there.

Usage: python -m bench.surveys.names [--check]

Every release and every fork at hand is imported in the sandbox and lists its public modules, classes and functions,
and the parameters of each. A name that all of them have is left out; so is one that came, went and came back.
``--check`` writes nothing and exits 1 when the table differs.
"""

from __future__ import annotations

import base64
import json
import sys
import zlib
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path

from runners.core.packages.catalogue import Release, load_catalogue
from runners.core.protocol import Exited, Limits, Testcase, TestcaseKind
from runners.environments.store import Store, open_store
from runners.probe.layout import make_layout, make_task
from runners.probe.run import run_probe
from runners.sandbox.contract import Engine
from runners.sandbox.owner import make_name
from runners.sandbox.select import select_engine
from runners.toolchains import tvm

TABLE = Path(tvm.__file__).parent / "names.json"

LIST_NAMES = r"""
import base64, importlib, inspect, json, os, pkgutil, sys, types, warnings, zlib

os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # importing everything says a lot
warnings.simplefilter("ignore")
import tvm

# Programs, tests, and what needs a device's own tools to be imported at all.
SKIP = ("tvm.exec", "tvm.testing", "tvm.rpc.server", "tvm.driver", "tvm.micro", "tvm.contrib.hexagon",
        "tvm.meta_schedule.testing", "tvm.s_tir.meta_schedule.testing", "tvm.tl", "tvm.topi.testing")
DEEPEST = 3

modules = {"tvm": tvm}

def take(name):
    words = name.split(".")
    if name in modules or name.startswith(SKIP) or len(words) > DEEPEST or any(w.startswith("_") for w in words):
        return
    try:
        modules[name] = importlib.import_module(name)
    except BaseException:
        return
    for word, value in list(vars(modules[name]).items()):
        if isinstance(value, types.ModuleType):
            take(name + "." + word)  # another name of a module elsewhere, which no walk over files finds

files = [found.name for found in pkgutil.walk_packages(tvm.__path__, "tvm.", onerror=lambda name: None)]
for name in files:
    take(name)
for word in list(vars(tvm)):
    take("tvm." + word)

def parameters(value):
    try:
        every = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return None
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [one.name for one in every if one.kind in named]

names = {name: None for name in [*modules, *(name for name in files if not name.startswith(SKIP))]}
names["?"] = sorted(name for name, module in modules.items() if "__getattr__" in vars(module))
for name, module in modules.items():
    for word, value in vars(module).items():
        home = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
        home = home or type(value).__module__  # functions of the FFI have no home of their own
        ours = isinstance(home, str) and home.split(".")[0] in ("tvm", "tvm_ffi")
        if not word.startswith("_") and ours and (isinstance(value, types.ModuleType) or callable(value)):
            names[name + "." + word] = None if isinstance(value, types.ModuleType) else parameters(value)

text = base64.b64encode(zlib.compress(json.dumps(names, sort_keys=True).encode(), 9)).decode()
open("names.txt", "w").write(text)
"""
SHOW = "import sys; n, size = map(int, sys.argv[1:]); print(open('names.txt').read()[n * size:(n + 1) * size])"
PIECES, PIECE_CHARS = 5, 48_000
"""The supervisor keeps 60,000 bytes of a step's output."""

Names = Mapping[str, tuple[str, ...] | None]
"""Dotted name → its parameters, None where it has none to show. Under ``?`` the modules that make names up when they
are asked for one (``__getattr__``): what is in those no list can tell."""
Span = tuple[str | None, str | None]
"""First version with it, None for the oldest here; first version without it again, None for the newest."""


def names_of(release: Release, store: Store, engine: Engine, listing: str = LIST_NAMES) -> Names:
    """What one build's Python API holds, or what another program lists."""
    environment = store.get_environment(release)
    testcase = Testcase(
        kind=TestcaseKind.PYTHON,
        toolchain="tvm",
        files={"list_names.py": listing, "show.py": SHOW},
        steps=(
            ("python", "list_names.py"),
            *(("python", "show.py", str(piece), str(PIECE_CHARS)) for piece in range(PIECES)),
        ),
    )
    task = make_task(environment, testcase, Limits(wall_s=600))
    seen = run_probe(engine, make_layout(environment), task, run_id=make_name())
    if seen.ended != Exited(code=0) or len(seen.steps[-1].stdout.strip()) == PIECE_CHARS:
        raise SystemExit(f"TVM {release.version} does not list its names: {seen.ended}")
    return decode("".join(step.stdout.strip() for step in seen.steps[1:]))


def decode(text: str) -> Names:
    """What the program printed, its pieces put together."""
    document = json.loads(zlib.decompress(base64.b64decode(text)))
    return {name: None if words is None else tuple(words) for name, words in document.items()}


def span(present: Sequence[bool], versions: Sequence[str]) -> Span | None:
    """None for what came, went and came back."""
    first = present.index(True)
    after = len(present) - list(reversed(present)).index(True)
    if not all(present[first:after]):
        return None
    return (versions[first] if first else None, versions[after] if after < len(versions) else None)


def spans_of(lists: Mapping[str, Names]) -> dict[str, Span]:
    """Of every name that some build lacks; parameters are ``function(parameter)``."""
    versions = list(lists)
    unknowable = {module for names in lists.values() for module in names.get("?") or ()}
    flat = {version: frozenset(_flat(names, unknowable)) for version, names in lists.items()}
    every = frozenset().union(*flat.values())
    found = {name: span([name in flat[v] for v in versions], versions) for name in sorted(every)}
    kept = {name: ends for name, ends in found.items() if ends is not None and ends != (None, None)}
    return {name: ends for name, ends in kept.items() if not _inside_another(name, ends, kept)}


def _flat(names: Names, unknowable: Container[str]) -> Iterable[str]:
    for name, words in names.items():
        if name == "?" or name.rpartition(".")[0] in unknowable:
            continue
        yield name
        yield from (f"{name}({word})" for word in words or ())


def _inside_another(name: str, ends: Span, every: Mapping[str, Span]) -> bool:
    """What came and went with the namespace or function around it is said by that one's line."""
    outer = name.partition("(")[0] if name.endswith(")") else name.rpartition(".")[0]
    while outer:
        if every.get(outer) == ends:
            return True
        outer = outer.rpartition(".")[0]
    return False


def survey() -> str:
    """The table as it is committed."""
    lists = list_builds()
    return render(list(lists), spans_of(lists))


def list_builds(listing: str = LIST_NAMES) -> dict[str, Names]:
    """What each release and each fork holds, oldest first."""
    releases = [
        r for r in load_catalogue().list_releases("tvm", prereleases=True) if r.is_ordinary or r.source == "bundle"
    ]
    store, engine = open_store(), select_engine("auto")
    return {release.version: names_of(release, store, engine, listing) for release in releases}


def render(versions: Sequence[str], spans: Mapping[str, Span]) -> str:
    """One name a line, so that a new release makes a small difference."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(ends)}" for name, ends in spans.items())
    return f'{{\n "versions": {json.dumps(versions)},\n "names": {{\n{lines}\n }}\n}}\n'


def main() -> int:
    table = survey()
    if "--check" in sys.argv[1:]:
        return int(table != TABLE.read_text(encoding="utf-8"))
    TABLE.write_text(table, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
