"""Tests of the facts of each toolchain, and of the functions over them."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from packaging.version import Version

from bench.surveys import flags as survey_flags
from runners.core.errors import UserError
from runners.core.packages.catalogue import load_catalogue
from runners.core.protocol import Exited, Limits, Testcase, TestcaseKind
from runners.environments.store import Environment, Store, open_store
from runners.probe.layout import make_layout, make_task
from runners.probe.run import run_probe
from runners.probe.task import ProbeResult
from runners.rewrite.names import build_names
from runners.sandbox.owner import make_name
from runners.sandbox.select import select_engine
from runners.toolchains import (
    TOOLCHAINS,
    Toolchain,
    find_device,
    find_drift,
    find_toolchain,
    iree,
    make_canary_testcase,
)
from runners.toolchains.tvm.names import load_spans

CATALOGUE = load_catalogue()


def each_toolchain() -> list[Toolchain]:
    return list(TOOLCHAINS.values())


@pytest.mark.parametrize("toolchain", each_toolchain(), ids=lambda t: t.NAME)
def test_each_toolchain_is_complete(toolchain: Toolchain) -> None:
    """A toolchain has a device that any machine can run, a canary that starts a tool, and quiet variables."""
    assert TOOLCHAINS[toolchain.NAME] is toolchain
    assert any(device.hardware is None for device in toolchain.DEVICES)
    assert make_canary_testcase(toolchain, "0").steps
    assert toolchain.CANARY.prints
    assert toolchain.VARIABLES["PYTHONHASHSEED"] == "0"


@pytest.mark.parametrize("toolchain", each_toolchain(), ids=lambda t: t.NAME)
def test_no_word_stands_for_two_devices(toolchain: Toolchain) -> None:
    """An alias means one device of a toolchain."""
    words = [word for device in toolchain.DEVICES for word in {device.name, *device.aliases}]
    assert len(words) == len(set(words))


def test_an_unknown_toolchain_is_named_with_the_known_ones() -> None:
    """The message lists the valid names."""
    with pytest.raises(UserError, match=r"'tmv'.*iree, python, tvm"):
        find_toolchain("tmv")


@pytest.mark.parametrize(
    ("toolchain", "word", "device", "available"),
    [
        ("tvm", "CPU", "llvm", True),
        ("tvm", "nvidia", "cuda", False),
        ("iree", "llvm-cpu", "llvm-cpu", True),
        ("iree", "rocm", "hip", False),
        ("iree", "vulkan-spirv", "vulkan", False),
    ],
)
def test_devices_are_found_by_reporters_words(toolchain: str, word: str, device: str, available: bool) -> None:
    """A reporter's word finds the device, and the device states its requirements."""
    found = find_device(TOOLCHAINS[toolchain], word)
    assert found is not None
    assert (found.name, found.hardware is None) == (device, available)
    assert available or found.needs


def test_an_unknown_word_is_no_device() -> None:
    """No device is guessed."""
    assert find_device(TOOLCHAINS["tvm"], "toaster") is None


# ------------------------------------------------------------------------------------------------- drift


@pytest.mark.parametrize(
    ("toolchain", "name", "version", "successor"),
    [
        ("tvm", "tvm.relax.TensorStructInfo", "0.26.0", "tvm.relax.TensorType"),
        ("tvm", "tvm.arith.Analyzer", "0.27.0", "tvm.sym"),
        ("tvm", "tvm.relay.build", "0.25.0", None),
        ("tvm", "out_sinfo", "0.27.0.post1", "out_ty"),
        ("iree", "--iree-hip-target", "3.12.0", "--iree-rocm-target"),
        ("iree", "--iree-hal-target-device=llvm-cpu", "3.4.0", "--iree-hal-target-backends=llvm-cpu"),
        ("iree", "flow.dispatch.tensor.load", "3.4.0", "iree_tensor_ext.dispatch.tensor"),
    ],
)
def test_a_moved_name_leads_to_its_successor(toolchain: str, name: str, version: str, successor: str | None) -> None:
    """The table knows the names that a release lacks, and their successors."""
    entries = [entry for entry in find_drift(TOOLCHAINS[toolchain], name) if entry.affects(version)]
    assert {entry.new for entry in entries} == {successor}


def test_a_name_works_until_the_release_that_drops_it() -> None:
    """``tvm.arith`` is there in 0.26.0; ``--iree-opt-level`` is not before 3.3.0."""
    (arith,) = find_drift(TOOLCHAINS["tvm"], "tvm.arith")
    assert not arith.affects("0.26.0")
    (level,) = (e for e in find_drift(TOOLCHAINS["iree"], "--iree-opt-level") if e.of == "iree-compile")
    assert level.is_too_new("3.2.0")
    assert not level.is_too_new("3.3.0")
    assert not level.affects("3.13.0")


def test_unrelated_names_have_not_moved() -> None:
    """A namespace covers the names inside it, and no name that only begins with the same letters."""
    assert not find_drift(TOOLCHAINS["tvm"], "tvm.tirx.Var")
    assert not find_drift(TOOLCHAINS["iree"], "--iree-hal-target-device")


@pytest.mark.parametrize("toolchain", each_toolchain(), ids=lambda t: t.NAME)
def test_drift_is_listed_once_and_exact_only_with_a_successor(toolchain: Toolchain) -> None:
    """Each name has one entry for each of its programs, and only a rename can be exact; to nothing for a flag."""
    names = [(entry.old, entry.of) for entry in toolchain.DRIFT]
    assert len(names) == len(set(names))
    assert all(entry.new or (entry.new == "" and entry.kind == "flag") for entry in toolchain.DRIFT if entry.exact)


# ------------------------------------------------------------------------------------------------- wheels as text


def test_built_from_is_read_as_text(tmp_path: Path) -> None:
    """The version file of a wheel is never imported, whatever else it says."""
    folder = tmp_path / "iree/compiler"
    folder.mkdir(parents=True)
    commit = "0123456789abcdef" * 2 + "01234567"
    text = f'raise SystemExit("imported")\nVERSION = "3.1.4rc20250101"\nREVISIONS = {{"IREE": "{commit}"}}\n'
    (folder / "version.py").write_text(text)
    assert iree.read_build_info(tmp_path) == ("3.1.4rc20250101", commit)
    assert iree.read_build_info(tmp_path / "nowhere") == (None, None)


def test_tools_are_the_existing_programs(tmp_path: Path) -> None:
    """Releases differ in their programs: only executables that exist are listed."""
    folder = tmp_path / "iree/_runtime_libs"
    folder.mkdir(parents=True)
    for name, mode in (("iree-run-module", 0o755), ("iree-notes", 0o644), ("other", 0o755)):
        (folder / name).touch()
        (folder / name).chmod(mode)
    assert iree.list_tools(tmp_path) == {
        "python": ("python",),
        "iree-run-module": ("iree/_runtime_libs/iree-run-module",),
    }


@pytest.mark.parametrize(
    ("version", "tag"), [("0.25.0rc1", "v0.25.0.rc1"), ("0.25.0.post1", "v0.25.0.post1"), ("0.26.0", "v0.26.0")]
)
def test_tags_of_tvm(version: str, tag: str) -> None:
    """TVM's wheels name no commit, so the tag identifies the source."""
    assert TOOLCHAINS["tvm"].find_tag(version) == tag


# ------------------------------------------------------------------------------------------------- real wheels

REAL = [
    ("tvm", "0.16.dev0"),
    ("tvm", "0.22.0"),
    ("tvm", "0.25.0"),
    ("tvm", "0.27.0.post1"),
    ("iree", "2.9.0"),
    ("iree", "3.13.0"),
]

LOOK_UP = """
import importlib, importlib.util, json, sys

def there(path):
    parts = path.replace("()", "").split(".")  # the method of a new object is one of its class
    if parts[-1] == "tensor_intrin":  # the import alone compiles all intrinsics, for 15 seconds or more
        try:
            return importlib.util.find_spec(path) is not None
        except ImportError:  # the package of the name is not there
            return False
    for n in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:n]))
        except Exception:
            continue
        for part in parts[n:]:
            found = getattr(found, part, None)
        return found is not None
    return False

print(json.dumps([name for name in json.load(open("names.json")) if there(name)]))
"""


@pytest.fixture(scope="module")
def store() -> Store:
    return open_store()


def probe(environment: Environment, testcase: Testcase) -> ProbeResult:
    """A testcase in the best sandbox of this machine."""
    task = make_task(environment, testcase, Limits())
    return run_probe(select_engine("auto"), make_layout(environment), task, run_id=make_name())


@pytest.mark.compilers
@pytest.mark.sandbox
def test_a_testcases_variables_replace_the_usual_ones(store: Store) -> None:
    """Those of the toolchain that the testcase does not name stay."""
    testcase = Testcase(
        kind=TestcaseKind.PYTHON,
        toolchain="tvm",
        files={"a.py": "import os\nprint(os.environ['TVM_NUM_THREADS'], os.environ['TVM_BACKTRACE'])\n"},
        steps=(("python", "a.py"),),
        variables={"TVM_NUM_THREADS": "7"},
    )
    (step,) = probe(store.get_environment(CATALOGUE.find("tvm", "0.27.0")), testcase).steps
    assert step.stdout == "7 1\n"


@pytest.mark.compilers
@pytest.mark.sandbox
@pytest.mark.parametrize(("name", "version"), REAL)
def test_the_canary_runs(store: Store, name: str, version: str) -> None:
    """The oldest and the newest builds, 0.25.0 as of its day, and forks: each compiles, saves and runs a program."""
    release = CATALOGUE.find(name, version)
    environment = store.get_environment(release)
    assert (environment.commit, environment.built) == (release.commit, release.built)
    seen = probe(environment, make_canary_testcase(TOOLCHAINS[name], version))
    assert seen.ended == Exited(code=0), seen.steps
    assert TOOLCHAINS[name].CANARY.prints in seen.steps[-1].stdout


@pytest.mark.compilers
@pytest.mark.sandbox
@pytest.mark.parametrize("version", ["0.17.dev0", "0.22.0", "0.25.0", "0.26.0", "0.27.0.post1"])
def test_drift_matches_the_wheels(store: Store, version: str) -> None:
    """Removed names are missing. Exact successors exist from the release that introduced them.

    A successor without such a release is used in one direction, and exists where the old name is gone.
    """
    entries = [e for e in TOOLCHAINS["tvm"].DRIFT if e.old.startswith("tvm.") and not e.listed]
    successors = build_names(version, entries).find_successor
    used = [e for e in entries if e.exact and (e.introduced_in is not None or e.affects(version))]
    exact = [e.new for e in used if e.new and not e.is_too_new(version)]
    names = sorted(
        {*(name for e in entries for name in (e.old, e.new) if name), *filter(None, map(successors, exact))}
    )
    testcase = Testcase(
        kind=TestcaseKind.PYTHON,
        toolchain="tvm",
        files={"look_up.py": LOOK_UP, "names.json": json.dumps(names)},
        steps=(("python", "look_up.py"),),
    )
    seen = probe(store.get_environment(CATALOGUE.find("tvm", version)), testcase)
    assert seen.ended == Exited(code=0), seen.steps
    there = set(json.loads(seen.steps[-1].stdout.splitlines()[-1]))
    assert not [e.old for e in entries if e.affects(version) and e.old in there]
    assert not [new for new in exact if successors(new) not in {*there, None}]  # None: gone later, nothing is ported


@pytest.mark.compilers
@pytest.mark.sandbox
@pytest.mark.parametrize("version", ["0.17.dev0", "0.26.0"])
def test_listed_names_are_there_as_long_as_the_list_says(store: Store, version: str) -> None:
    """A sample of the generated list (`bench/surveys/names.py` makes all of it), looked up in one build.

    Names below ``tensor_intrin`` are left to the survey, as `LOOK_UP` does not import it.
    """
    every = sorted(name for name in load_spans() if not name.endswith(")") and ".tensor_intrin." not in name)
    names = random.Random(version).sample(every, 200)
    testcase = Testcase(
        kind=TestcaseKind.PYTHON,
        toolchain="tvm",
        files={"look_up.py": LOOK_UP, "names.json": json.dumps(names)},
        steps=(("python", "look_up.py"),),
    )
    seen = probe(store.get_environment(CATALOGUE.find("tvm", version)), testcase)
    assert seen.ended == Exited(code=0), seen.steps
    there = set(json.loads(seen.steps[-1].stdout.splitlines()[-1]))
    assert there == {name for name in names if _inside(load_spans()[name], version)}


def _inside(span: tuple[str | None, str | None], version: str) -> bool:
    since, gone = span
    return (since is None or Version(version) >= Version(since)) and (
        gone is None or Version(version) < Version(gone)
    )


@pytest.mark.compilers
@pytest.mark.sandbox
@pytest.mark.parametrize(("tool", "version"), [("iree-compile", "3.6.0"), ("iree-run-module", "2.9.0")])
def test_listed_flags_are_those_of_the_tools_own_help(store: Store, tool: str, version: str) -> None:
    """One release of each tool, of the generated table (`bench/surveys/flags.py` makes all of it)."""
    table = json.loads(survey_flags.TABLE.read_text(encoding="utf-8"))["tools"][tool]
    known = survey_flags.flags(CATALOGUE.find("iree", version), tool, store, select_engine("auto"))
    assert {flag for flag in table if flag in known} == {
        flag for flag, span in table.items() if _inside(span, version)
    }


def test_large_packages_have_canaries_of_their_own() -> None:
    """They run before the toolchain's, whose output is the last."""
    toolchain = TOOLCHAINS["tvm"]
    made = make_canary_testcase(toolchain, "0.27.0", ("einops", "onnx>=1.16", "torch==2.7.1"))
    assert made.steps == (("python", "canary_onnx.py"), ("python", "canary_torch.py"), *toolchain.CANARY.steps)
    assert {"canary_onnx.py", "canary_torch.py"} < set(made.files)


def test_the_needs_of_a_device_are_a_phrase_and_name_the_build_once() -> None:
    """They follow ``running it needs`` and ``on a machine with``."""
    needs = [one.needs for toolchain in TOOLCHAINS.values() for one in toolchain.DEVICES if one.needs is not None]
    assert needs
    assert all(one.count("a build with its runtime") <= 1 for one in needs)
    assert not any(":" in one or "," in one for one in needs)
