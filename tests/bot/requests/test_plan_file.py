"""Plans split into cells, and the checks of a probing job."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from bot.forge.actions import add_summary, read_step, set_outputs
from bot.forge.payloads import replace_surrogates
from bot.requests.markdown_lines import CodeBlock
from bot.requests.plan_file import split_into_cells, split_releases
from bot.requests.testcase import extract_with_blocks
from bot.settings import load_settings
from runners.cells.run import check_machine, run_cell
from runners.core.bisection.commits import Prior
from runners.core.errors import InfraError, NotReducible, UserError
from runners.core.job_files import read_plan, write_result
from runners.core.protocol import (
    MAX_PLAN_BYTES,
    CellResult,
    Claim,
    Investigation,
    JobCell,
    JobPlan,
    Plan,
    Smaller,
    Testcase,
    TestcaseKind,
    digest_of,
)
from runners.core.runs import Tell
from tests.bot.requests.fake_forge import issue_of

CASE = Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"a.py": "1"}, steps=(("python", "a.py"),))


def plan_of(count: int, *, bisect: bool = False, every: bool = True, devices: tuple[str, ...] = ()) -> Plan:
    order = tuple(f"0.{i}.0" for i in range(count))
    first = order if every else (order[0], order[-1])
    return Plan(
        testcase=CASE,
        claim=Claim(),
        device="llvm",
        order=order,
        first=first,
        reported=order[0],
        bisect=bisect,
        devices=devices,
    )


@given(st.integers(1, 40), st.integers(1, 12))
def test_split_plans_hold_every_release_once_in_order(count: int, size: int) -> None:
    packs = split_releases(plan_of(count), size)
    assert [version for pack in packs for version in pack.order] == list(plan_of(count).order)
    assert all(pack.first == pack.order and len(pack.order) <= size for pack in packs)
    assert packs[0].reported == "0.0.0"
    assert all(pack.reported is None for pack in packs[1:])


@pytest.mark.parametrize("plan", [plan_of(30, bisect=True), plan_of(30, every=False), plan_of(8)])
def test_a_search_is_never_spread_over_jobs(plan: Plan) -> None:
    """Each of its runs depends on the answer before."""
    assert split_releases(plan, 8) == (plan,)


def test_names_of_cells_are_ours_and_differ() -> None:
    """They name files, artifacts and rows of a matrix, and hold no text of an issue."""
    settings = load_settings(b"machines: {lab: [cuda], amd-box: [rocm]}\nlimits: {versions-per-job: 3}")
    plan = plan_of(8, devices=("cuda", "vulkan"))
    cells = split_into_cells(plan, settings, ("lab",), minimize=True)
    assert [(cell.id, cell.machine) for cell in cells] == [
        ("any-1", ""),
        ("any-2", ""),
        ("any-3", ""),
        ("on-lab", "lab"),
    ]
    assert {cell.plan.devices for cell in cells[:-1]} == {("vulkan",)}
    assert cells[-1].plan == plan
    assert [cell.minimize for cell in cells] == [False, False, True, False]


def test_code_of_a_comment_keeps_the_issues_claim() -> None:
    """Also if the code holds fences of its own."""
    issue = issue_of("apache-tvm 0.25.0 prints\n\n```\nValueError: shape mismatch in add\n```\n")
    text = "import tvm\nprint('```')\nassert tvm.x\n"
    read = extract_with_blocks(issue, toolchain=None, blocks=(CodeBlock(info="python", text=text),))
    assert "print('```')" in str(read)
    assert read.claim.signature is not None
    assert "shape mismatch" in read.claim.signature.message


def test_lone_surrogates_are_replaced() -> None:
    issue = replace_surrogates(issue_of("a\ud800b"))
    assert issue.body == "a\ufffdb"
    assert issue.created == issue_of("x").created


# ---------------------------------------------------------------------------------------------- the probing job


def sealed(plan: Plan) -> tuple[bytes, str]:
    cell = JobCell(id="any", plan=plan, testcase_sha256=digest_of(plan.testcase))
    data = msgspec.json.encode(JobPlan(cells=(cell,), case=msgspec.Raw(b'{"secret":1}')))
    return data, sha256(data).hexdigest()


class SmallBench:
    conditions = ("said",)

    def run(self, plan: Plan, *, prior: Prior | None = None, tell: Tell | None = None) -> Investigation:
        return Investigation()

    def minimize(
        self, plan: Plan, version: str, *, control: str = "", passing: str = "", probes: int = 0, seconds: float = 0
    ) -> Smaller:
        raise NotReducible("it is small already")


def test_a_cell_is_run_and_its_result_written(tmp_path: Path) -> None:
    data, digest = sealed(plan_of(2))
    result = run_cell(data, digest=digest, cell="any", open_bench=lambda cell: SmallBench())
    path = write_result(result, tmp_path / "results")
    assert msgspec.json.decode(path.read_bytes(), type=CellResult) == result
    assert [file.name for file in path.parent.iterdir()] == ["any.json"]
    assert result.seen.conditions == ("said",)


def test_a_testcase_that_cannot_be_reduced_is_noted() -> None:
    """The answer says why there is no smaller testcase."""
    cell = JobCell(id="any", plan=plan_of(2), testcase_sha256=digest_of(CASE), minimize=True)
    data = msgspec.json.encode(JobPlan(cells=(cell,), case=msgspec.Raw(b"{}")))
    result = run_cell(data, digest=sha256(data).hexdigest(), cell="any", open_bench=lambda cell: SmallBench())
    assert result.seen.smaller is None
    assert any("no smaller testcase" in said for said in result.seen.conditions)


def test_a_failure_of_ours_is_a_result_too() -> None:
    """So the report can name it: no reader sees the job's log."""

    def broken(cell: JobCell) -> SmallBench:
        raise InfraError("no space left on the disk")

    data, digest = sealed(plan_of(2))
    assert run_cell(data, digest=digest, cell="any", open_bench=broken).problem == "no space left on the disk"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data + b" ", "sha256"),
        (lambda data: data.replace(b"0.0.0", b"0.0.1"), "sha256"),
        (lambda data: b"x" * (MAX_PLAN_BYTES + 1), "KiB"),
    ],
)
def test_another_plan_is_not_run(change: object, said: str) -> None:
    data, digest = sealed(plan_of(2))
    assert callable(change)
    with pytest.raises(UserError, match=said):
        read_plan(change(data), digest)


@pytest.mark.parametrize("data", [b"", b"{}", b"[" * 50_000, b'{"schema":1}'])
def test_an_unreadable_plan_is_a_user_error(data: bytes) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_plan(data, sha256(data).hexdigest())


def test_a_cell_that_is_not_in_the_plan_is_named() -> None:
    data, digest = sealed(plan_of(2))
    with pytest.raises(UserError, match="it has any"):
        run_cell(data, digest=digest, cell="$(id)", open_bench=lambda cell: SmallBench())


@pytest.mark.parametrize(
    ("environment", "fine"),
    [
        ({}, True),
        ({"RUNNER_ENVIRONMENT": "github-hosted"}, True),
        ({"RUNNER_ENVIRONMENT": "self-hosted"}, False),
        ({"RUNNER_ENVIRONMENT": "self-hosted", "REPROBOT_EPHEMERAL": "1"}, True),
    ],
)
def test_a_persistent_runner_is_refused(environment: dict[str, str], fine: bool) -> None:
    """Files that a stranger's code leaves there would reach the next job."""
    if fine:
        check_machine(environment)
    else:
        with pytest.raises(UserError, match="ephemeral"):
            check_machine(environment)


# ---------------------------------------------------------------------------------------------- the step


def test_outputs_and_summary_are_appended(tmp_path: Path) -> None:
    output, summary = tmp_path / "o", tmp_path / "s"
    step = read_step({"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_RUN_ID": "5"})
    set_outputs(step, {"a": "1"})
    set_outputs(step, {"b": '{"x":["y"]}'})
    add_summary(step, "# Hi")
    assert output.read_text() == 'a=1\nb={"x":["y"]}\n'
    assert summary.read_text() == "# Hi\n"
    assert step.run_id == "5.1"


@pytest.mark.parametrize(("name", "value"), [("a", "1\nmatrix=2"), ("a", "1\rb"), ("a=b", "1"), ("a\nb", "1")])
def test_an_output_cannot_spill_into_another(name: str, value: str, tmp_path: Path) -> None:
    """Not even by a bug of ours."""
    with pytest.raises(ValueError, match="one line"):
        set_outputs(read_step({"GITHUB_OUTPUT": str(tmp_path / "o")}), {name: value})


def test_a_summary_is_cut_before_github_drops_it(tmp_path: Path) -> None:
    """GitHub drops the whole summary of a step if it is larger than 1 MiB."""
    summary = tmp_path / "s"
    add_summary(read_step({"GITHUB_STEP_SUMMARY": str(summary)}), "🐞" * 2_000_000)
    assert summary.stat().st_size < 1024 * 1024
