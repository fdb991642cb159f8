"""The words of a report tell which of two printed programs is wrong, where no output is quoted as a whole."""

from __future__ import annotations

import msgspec
import pytest

from runners.core.failure.printed.programs.told_parts import Part, mark_by_told_parts, read_parts
from runners.core.protocol import Claim, ClaimKind, Exited, Observation, Outcome, Variant
from tests.support.observed import PLAN, observe

M, P, S = Outcome.MATCH, Outcome.PASS, Outcome.OTHER_FAILURE
OLD = 'func.func @f(%a: f32) -> f32 {\n  %0 = unit.scale %a {status = "no"} : f32\n  return %0 : f32\n}'
NEW = 'func.func @f(%x: f32) -> f32 {\n  %1 = unit.scale %x {status = "yes"} : f32\n  return %1 : f32\n}'


def print_on(version: str, excerpt: str, outcome: Outcome = S, **more: object) -> Observation:
    return observe(version, outcome, ended=Exited(code=0), excerpt=excerpt, **more)


def mark(said: str, *seen: Observation, **claim: object) -> list[Outcome]:
    made = Claim(kind=ClaimKind.WRONG_RESULT, told=said)
    plan = msgspec.structs.replace(PLAN, claim=msgspec.structs.replace(made, **claim))
    return [one.outcome for one in mark_by_told_parts(plan, seen)]


BUILDS = (print_on("1.0", OLD), print_on("1.1", OLD.replace("%0", "%7")), print_on("1.2", NEW))


@pytest.mark.parametrize(
    "said",
    [
        'The op keeps `status = "no"`.',
        'I expect `status = "yes"` on it.',
        'The output has no `status = "yes"` at all.',
        'It should not be `status = "no"`, but `status = "yes"`. With `@f` alone it is right.',
        '`status = "no"` instead of `status = "yes"` is left there, although it should be the other way round.',
    ],
)
def test_a_part_that_some_builds_print_divides_the_builds(said: str) -> None:
    """A part that all builds print, or none, tells nothing."""
    assert mark(said, *BUILDS) == [M, M, P]


@pytest.mark.parametrize(
    ("said", "claim"),
    [
        ("It keeps `@f` and `unit.scale`.", {}),
        ('Without the flag I get `status = "yes"`.', {}),
        ('It keeps `status = "no"`. I expect `return % : f32`, and it has `status = "no"` as it should.', {}),
        ('The op keeps `status = "no"`.', {"kind": ClaimKind.ERROR}),
        ('The op keeps `status = "no"`, on 1.2 too.', {"versions": ("1.2",)}),
    ],
)
def test_parts_that_do_not_divide_the_builds_mark_nothing(said: str, claim: dict[str, object]) -> None:
    """Parts of all builds, of another call, in both roles, of another claim, and against the named release."""
    assert mark(said, *BUILDS, **claim) == [S, S, S]


def test_a_text_in_the_notation_of_its_build_counts_as_the_posted_one() -> None:
    """The brackets around attributes are a matter of notation."""
    newest = NEW.replace('{status = "yes"}', '<{status = "yes"}>')
    ported = print_on("1.3", newest, variant=Variant.PORTED, notation_only=True)
    said = 'It should be `unit.scale %x {status = "yes"}`.'
    assert mark(said, *BUILDS[:2], ported) == [M, M, P]
    renamed = print_on("1.3", newest, variant=Variant.PORTED)
    assert mark(said, *BUILDS[:2], renamed) == [S, S, S]


def test_a_program_with_some_of_the_quoted_rows_is_neither() -> None:
    """Builds share rows with the wrong program that have nothing to do with the fault."""
    quoted = (
        '%0 = unit.scale %a {status = "no", kind = "void", late} : f32\n%1 = unit.turn %0 {by = 7, of = "a"} : f32'
    )
    frame = "func.func @f(%a: f32) -> f32 {{\n  {}\n  return %0 : f32\n}}"
    shares, other = quoted.split("\n")[0], quoted.split("\n")[0].replace('"void"', '"none"')
    builds = [print_on(f"1.{at}", frame.format(one)) for at, one in enumerate((quoted, shares, other))]
    assert mark("", *builds, actual=quoted) == [M, S, P]


def test_quoted_rows_with_gaps_are_parts() -> None:
    quoted = '%3 = unit.scale %b {status = "no"} ... : f32\n...'
    long = OLD.replace("} : f32", "} at (1, 2, 3) : f32"), NEW.replace("} : f32", "} at (1, 2, 3) : f32")
    claim = {"actual": quoted.replace("...", "at (1, 2, 3) ...", 1)}
    assert mark("", print_on("1.0", long[0]), print_on("1.2", long[1]), **claim) == [M, P]


def test_other_answers_are_kept_and_contradictions_mark_nothing() -> None:
    said = 'The op keeps `status = "no"`.'
    assert mark(said, print_on("1.0", OLD, M), *BUILDS[1:]) == [M, M, P]
    assert mark(said, print_on("1.0", OLD, P), *BUILDS[1:]) == [P, S, S]
    assert mark(said, *BUILDS, print_on("1.2", OLD, attempt=2)) == [S, S, S, S]
    assert mark(said, *BUILDS[:2]) == [S, S]
    assert mark(said, *BUILDS[:2], print_on("1.2", f"[…]\n{NEW}")) == [S, S, S]


def test_a_star_stands_for_the_rest_of_a_name() -> None:
    parts = read_parts(Claim(kind=ClaimKind.WRONG_RESULT, told="There is no `vector.*` op, and still `linalg.fill`."))
    assert parts == (Part("vector.*", is_wanted=True), Part("linalg.fill", is_wanted=False))


SCRIPT = """@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 8), dtype="float32")) -> R.Tensor(("n", 8), dtype="float32"):
        lv = R.call_tir(cls.{name}, (x,), out_sinfo=R.Tensor((n, 8), dtype="float32"))
        return lv
"""


def test_a_printed_script_is_a_program() -> None:
    """Quotes and ``dtype=`` do not count, because people leave them out. Other output is no program."""
    seen = [print_on("1.0", SCRIPT.format(name="add")), print_on("1.1", SCRIPT.format(name="add_in_place"))]
    assert mark("It calls `cls.add`, and should call `cls.add_in_place`.", *seen) == [M, P]
    assert mark("It keeps `R.call_tir(cls.add, (x,), out_sinfo=R.Tensor((n, 8), 'float32'))`.", *seen) == [M, P]
    plain = [print_on("1.0", "tvm 1.0\nadd"), print_on("1.1", "tvm 1.1\nadd_in_place")]
    assert mark("It calls `add`, and should call `add_in_place`.", *plain) == [S, S]


@pytest.mark.parametrize(
    ("said", "marks"),
    [
        ('It should be `unit.scale %x {status = "yes"}`, not `status = "no"`.', [P, P]),
        ('It keeps `unit.scale %1 {status = "yes"} : f32 and return %1 : f32`.', [S, S]),
        ("I would expect `unit.scale ... : f32` to be left.", [S, S]),
    ],
    ids=["wanted, and nothing unwanted", "no part of the other side", "no long part"],
)
def test_parts_that_no_build_lacks_judge_all_builds(said: str, marks: list[Outcome]) -> None:
    """All print a long part of one side, and none prints a part of the other side."""
    assert mark(said, print_on("1.0", NEW), print_on("1.1", NEW)) == marks


def test_quoted_rows_of_all_builds_are_the_reported_program() -> None:
    row = '  %0 = unit.scale %a {mode = 3, status = "no"} : f32 ... loc'
    printed = OLD.replace("{status", "{mode = 3, status")
    seen = print_on("1.0", printed), print_on("1.1", printed)
    assert mark('I expect `status = "yes"`.', *seen, actual=row) == [M, M]


def test_parts_of_sentences_come_before_rows_of_a_quoted_program() -> None:
    """Most rows of a wrong program are right, and a release may print them in another notation."""
    row = "  %0 = unit.scale %a {mode = 3, more = 4} : f32\n"
    old = OLD.replace("  return", row + "  return")
    seen = [
        print_on("1.0", OLD),
        print_on("1.1", old),
        print_on("1.2", old.replace("return", "unit.copy %0\n  return")),
    ]
    assert mark("I expect a `unit.copy` in front of the return.", *seen, actual=old) == [M, M, P]


GAPPED = "%1 = unit.guard ... {\n  ...\n  unit.fill ...\n}\n%2 = unit.scale %1 ..."
GUARDED = "unit.guard %0 {\n  unit.fill %0\n}\n%2 = unit.scale %1 {a = 1}"


@pytest.mark.parametrize(
    ("old", "new", "outcomes"),
    [
        (GUARDED, "%2 = unit.scale %1\nunit.end %2", [M, P]),
        (GUARDED.replace("unit.fill", "unit.other"), "unit.fresh %1 {\n  unit.other %0\n}\nunit.scale %1", [S, S]),
    ],
    ids=["two names", "one name, which may be renamed"],
)
def test_operations_of_a_quoted_program_with_gaps_divide_the_builds(
    old: str, new: str, outcomes: list[Outcome]
) -> None:
    assert mark("", print_on("1.0", old), print_on("1.2", new), actual=GAPPED) == outcomes


def test_a_short_wrong_value_counts_beside_a_right_one_of_the_same_form() -> None:
    old, new = (OLD.replace('status = "no"', f"tiles = {tiles}") for tiles in ("[1, 1]", "[16, 16]"))
    seen = (print_on("1.0", old.replace("[1, 1]", "[4, 4]")), print_on("1.1", old), print_on("1.2", new))
    assert mark("", *seen, actual="[1, 1]", expected="[16, 16]") == [S, M, P]
    assert mark("", *seen, actual="[1, 1]", expected="[16]") == [S, S, S]


def test_a_build_without_the_attribute_of_both_values_is_neither() -> None:
    """The attribute may have had another name there."""
    quoted = {"actual": 'unit.scale %a {tiling = "none", status = "no"}', "expected": 'tiling = "all"'}
    seen = (
        print_on("1.0", OLD.replace('status = "no"', 'sizes = "none"')),
        print_on("1.1", OLD.replace("{", '{tiling = "none", ')),
        print_on("1.2", NEW.replace("{", '{tiling = "all", ')),
    )
    assert mark("", *seen, **quoted) == [S, M, P]
    assert mark("", *seen[:2], **quoted) == [S, S]


INPUT = OLD.replace(' {status = "no"}', "")


@pytest.mark.parametrize(
    ("said", "marks"),
    [
        ('I expect `status = "yes"` on it.', [P, P]),
        ('I expect `status = "yes"` on it, and no `unit.scale %x` at all.', [S, S]),
        ("I expect a `unit.scale` there.", [S, S]),
        ("The `unit.drop` is left there.", [P, P]),
        ("The `unit.gone` is left there.", [S, S]),
        ('I expect `status = "yes"`, and `unit.gone` after it.', [S, S]),
    ],
    ids=["made", "not all", "in the input", "removed", "never there", "not all made"],
)
def test_a_part_that_the_pass_makes_or_removes_judges_all_builds(said: str, marks: list[Outcome]) -> None:
    """Each build prints what the report asks for, and the posted program lacks it. Then the pass did its work."""
    posted = msgspec.structs.replace(PLAN.testcase, files={"a.mlir": INPUT.replace("return", "unit.drop\n  return")})
    plan = msgspec.structs.replace(PLAN, testcase=posted, claim=Claim(kind=ClaimKind.WRONG_RESULT, told=said))
    seen = [print_on("1.0", NEW), print_on("1.2", NEW)]
    assert [one.outcome for one in mark_by_told_parts(plan, seen)] == marks
