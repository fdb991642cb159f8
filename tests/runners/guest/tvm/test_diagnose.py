"""Diagnosers on real releases find each faulty program, accuse no valid program, and change no result.

bench/diagnosis/diagnosers.py runs all releases and prints a table.
"""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.runners.guest.tvm import sweep
from tests.runners.guest.tvm.sweep import (
    EXPECTED,
    LAUNCHER,
    MODES,
    ProgramRun,
    environment,
    filled_alike,
    programs,
    run_all,
    variables,
)

pytestmark = pytest.mark.compilers

NEWEST, OLDEST = "0.27.0", "0.25.0"

READ = tuple(name for name in programs("unwritten") if name not in sweep.MISSED)

SAMPLE = (
    "bounds/take_rows_beyond",
    "bounds/take_of_computed_indices",
    "bounds/scatter_elements_spills_into_next_row",
    "bounds/te_lookup",
    "bounds/tir_far_away_crashes",
    "signature/lifted_in_a_sequence",
    "mutation/inside_a_sequence",
    "nan/nan_of_other_sign",
    "values/second_of_two_passes_does_it",
    "unwritten/border_of_a_stencil",
    "unwritten/call_tir_leaves_the_last_row",
    "unwritten/largest_without_a_start",
    "written/the_pipeline_drops_an_init",
    "written/flat_alias_of_the_same_memory",
    "valid/transformer_block",
    "valid/library_pool_of_uneven_windows",
    "valid/te_padded_stencil",
    "valid/lift_transform_params_used_rightly",
)
"""Programs that together use each hook, for the release whose API differs most."""


@cache
def ran(version: str, names: tuple[str, ...]) -> dict[str, ProgramRun]:
    return {result.program: result for result in run_all(version, names)}


@cache
def ran_plain(version: str, names: tuple[str, ...]) -> dict[str, ProgramRun]:
    return {result.program: result for result in run_all(version, names, "plain")}


def expected(program: str) -> set[str]:
    kind = EXPECTED.get(program.split("/")[0])
    return {kind} if kind else set()


@pytest.mark.parametrize("group", EXPECTED)
def test_every_faulty_program_is_diagnosed(group: str) -> None:
    """Each program has its own kind of finding, and no other."""
    names = tuple(name for name in programs(group) if name not in sweep.MISSED)
    assert len(names) >= (12 if group in ("bounds", "unwritten") else 5)
    for program, result in ran(NEWEST, names).items():
        assert result.kinds == expected(program), (program, result.claims, result.stderr[-2000:])


def test_no_valid_program_is_accused_or_changed() -> None:
    """Status and standard output equal those of the plain run, and there is no finding."""
    names = programs("valid")[::2]
    assert len(names) >= 30
    plain = ran_plain(NEWEST, names)
    for program, result in ran(NEWEST, names).items():
        assert not result.findings, (program, result.claims)
        assert (result.code, result.stdout) == (plain[program].code, plain[program].stdout), program
        assert result.code == 0, (program, result.stderr[-2000:])


def test_harmless_unwritten_memory_is_no_finding() -> None:
    """Unread padding, memory with a second name, and stores that the program's own pass loses are no faults."""
    names = programs("written")
    assert len(names) >= 20
    for program, result in ran(NEWEST, names).items():
        assert not result.findings, (program, result.claims)


def test_an_index_that_a_pass_no_longer_moves_inside_is_not_the_testcases() -> None:
    """``ReorderTakeAfterMatmul`` lost the mode of ``take`` up to 0.26."""
    program = "written/take_clip_lost_by_a_pass"
    for result in ran("0.26.0", (program,)).values():
        assert not result.findings, result.claims


def test_an_index_outside_of_one_of_two_calls_blames_neither_side() -> None:
    """The other call asks for indices that wrap around: a kernel does not tell its call."""
    for result in ran(NEWEST, programs("undecided")).values():
        assert [one.evidence["origin"] for one in result.findings] == ["unknown"], result.claims


def test_finding_names_the_unwritten_buffer() -> None:
    """The buffer is the one in the program's label."""
    for program, result in ran(NEWEST, READ).items():
        assert [one.evidence["buffer"] for one in result.findings] == [sweep.labelled_buffer(program)], program


def test_failure_depends_on_the_fill() -> None:
    """Each faulty program passes with one constant and fails with another: the programs are what they claim to be."""
    seen: dict[str, set[int]] = {program: set() for program in READ[::4]}
    for fill in sweep.FILLS:
        undecided = tuple(program for program, codes in seen.items() if codes != {0, 1})
        for one in filled_alike(NEWEST, undecided, fill) if undecided else ():
            seen[one.program].add(one.code)
    assert all(codes == {0, 1} for codes in seen.values()), seen


def test_oldest_release_has_the_same_findings() -> None:
    """Its IR, buffers and annotations have other classes and names."""
    for program, result in ran(OLDEST, SAMPLE).items():
        assert result.kinds == expected(program), (program, result.claims, result.stderr[-2000:])


def test_finding_describes_the_access() -> None:
    """The evidence has operator, axis, extent, range of the indices, and the variable with the indices."""
    name = "bounds/take_rows_beyond"
    (finding,) = ran(NEWEST, programs("bounds"))[name].findings
    seen = finding.evidence
    assert (seen["operator"], seen["axis"], seen["extent"]) == ("relax.take", 0, 10)
    assert (seen["index_range"], seen["outside_range"]) == ([0, 200], [10, 200])
    assert seen["testcase_value"] == "`wanted`"
    assert seen["origin"] == "testcase-data"
    assert "`wanted`" in finding.summary


def test_computed_index_has_no_variable() -> None:
    """No variable of the testcase has the index, and the evidence names none."""
    (finding,) = ran(NEWEST, programs("bounds"))["bounds/take_of_computed_indices"].findings
    assert finding.evidence["origin"] == "computed-data"
    assert finding.evidence["testcase_value"] is None


@pytest.mark.parametrize(
    ("name", "requested", "extent", "value"),
    [
        ("bounds/topk_of_more_than_there_is", [9, 9], 5, "the number 9"),
        ("bounds/te_argsort_counts_beyond", [4, 7], 4, "`how_many`"),
    ],
)
def test_arguments_of_library_kernels_are_checked(name: str, requested: list[int], extent: int, value: str) -> None:
    """The finding has the requested number of elements, the extent, and the number's origin in the testcase."""
    (finding,) = ran(NEWEST, programs("bounds"))[name].findings
    seen = finding.evidence
    assert (seen["index_range"], seen["extent"], seen["testcase_value"]) == (requested, extent, value)
    assert (seen["axis"], seen["origin"]) == (1, "testcase-data")


def test_crash_out_of_bounds_becomes_a_finding() -> None:
    """The plain run dies of SIGSEGV. The instrumented run survives and reports the access."""
    name = "bounds/tir_far_away_crashes"
    assert ran_plain(NEWEST, (name,))[name].code == -11
    (finding,) = ran(NEWEST, programs("bounds"))[name].findings
    assert finding.evidence["outside_range"][1] >= 1 << 40


def test_finding_shows_the_working_call() -> None:
    """The evidence has the pass, the new function and the working call."""
    (finding,) = ran(NEWEST, programs("signature"))["signature/lifted_in_a_sequence"].findings
    assert finding.evidence["pass"] == "LiftTransformParams"
    assert finding.evidence["new_functions"] == ["main_transform_params"]
    working = 'prepared = vm["main_transform_params"]([w]); vm["main"](x, *prepared)'
    assert finding.evidence["call_that_works"] == working


def test_working_call_repairs_the_program() -> None:
    """Every program with a working call fails in its plain run and passes with the repaired call."""
    shown = [
        one.program
        for one in ran(NEWEST, programs("signature")).values()
        if any(finding.evidence.get("call_that_works") for finding in one.findings)
    ]
    assert len(shown) == 5
    repaired = run_all(NEWEST, tuple(shown), "repair")
    assert [one.code for one in repaired] == [0] * len(shown), [one.stderr[-300:] for one in repaired]
    assert all(one.code != 0 for one in ran_plain(NEWEST, tuple(shown)).values())


def test_finding_tells_earlier_calls_from_the_way_of_calling() -> None:
    """Two calls on one module: a pass that counts differs in every way of calling, a pass that annotates in none."""
    names = ("mutation/changes_more_each_time", "mutation/annotate_entry_by_hand")
    counting, annotating = (ran(NEWEST, names)[name].findings[0] for name in names)
    assert set(counting.evidence["called_twice_on_one_module"].values()) == {"differs"}
    assert len(counting.evidence["called_twice_on_one_module"]) == 4
    assert "in whichever way" in counting.summary
    assert set(annotating.evidence["called_twice_on_one_module"].values()) == {"same"}


def test_finding_names_the_first_pass_that_loses_values() -> None:
    """Earlier passes and passes that only keep the constants are not named."""
    (finding,) = ran(NEWEST, programs("values"))["values/second_of_two_passes_does_it"].findings
    assert finding.evidence["pass"] == "Lose"
    assert finding.evidence["outputs"] == [1]


# ---------------------------------------------------------------------------------------------- as a program


def run_script(
    tmp_path: Path, text: str, *arguments: str, modes: str | None = MODES
) -> subprocess.CompletedProcess[str]:
    """Run the testcase in a process of its own, without instrumentation if ``modes`` is None."""
    (tmp_path / "repro.py").write_text(text)
    hooks = [] if modes is None else [str(LAUNCHER), "tvm.diagnose", modes]
    python = str(environment(NEWEST).interpreter.executable)
    env = {**variables(NEWEST), "REPROBOT_FINDINGS": str(tmp_path / "findings")}
    return subprocess.run(
        [python, *hooks, "repro.py", *arguments], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )


ENDINGS = {
    "exception": "import tvm\nprint('before')\n\ndef f():\n    raise KeyError('no such thing')\n\nf()\n",
    "chained": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise RuntimeError('worse') from e\n",
    "status": "import sys\nprint(__name__, sys.argv, sys.path[0] != '')\nsys.exit(7)\n",
    "words": "raise SystemExit('in words')\n",
    "syntax": "def broken(:\n",
    "module": "import no_such_module\n",
    "assertion": "class T:\n    def test(self):\n        assert 1 == 2\n\n\nT().test()\n",
    "sibling": "try:\n    import tvm_findings\nexcept ImportError:\n    print('not importable')\n",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_instrumented_testcase_ends_as_a_plain_run(tmp_path: Path, ending: str) -> None:
    """Status, output and traceback are equal."""
    plain = run_script(tmp_path, ENDINGS[ending], "argument", modes=None)
    seen = run_script(tmp_path, ENDINGS[ending], "argument")
    assert (seen.returncode, seen.stdout) == (plain.returncode, plain.stdout)
    assert seen.stderr == plain.stderr


def test_compiler_that_cannot_be_imported_is_noted(tmp_path: Path) -> None:
    """The testcase still runs and fails by itself. A note has the reason for the missing findings."""
    (tmp_path / "repro.py").write_text("print('ran')\nimport tvm\n")
    (tmp_path / "tvm").mkdir()
    (tmp_path / "tvm" / "__init__.py").write_text("raise ImportError('undefined symbol')\n")
    python = str(environment(NEWEST).interpreter.executable)
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "REPROBOT_FINDINGS": str(tmp_path / "findings")}
    done = subprocess.run(
        [python, str(LAUNCHER), "tvm.diagnose", MODES, "repro.py"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "ran\n")
    assert "undefined symbol" in done.stderr
    (note,) = map(json.loads, (tmp_path / "findings").read_text().splitlines())
    assert note["kind"] == "note"


def test_unknown_diagnoser_is_refused(tmp_path: Path) -> None:
    """The message names the unknown diagnoser and the known ones."""
    done = run_script(tmp_path, "print('ran')\n", modes="bounds,astrology")
    assert (done.returncode, done.stdout) == (2, "")
    assert "astrology" in done.stderr
    assert "signature" in done.stderr


def test_every_folder_of_programs_is_a_group() -> None:
    """Each folder is run here, in test_reference.py, or by repeats.py or hangs.py of bench/diagnosis."""
    folders = {path.name for path in sweep.PROGRAMS.iterdir()}
    assert folders == {*EXPECTED, "valid", "written", "undecided", "nondeterministic", "hang", "reference"}
