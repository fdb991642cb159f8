"""A result artifact belongs to the job that was uploading a result when GitHub received it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest

from bot.forge.github import GithubForge, fetch_workflow_run
from bot.forge.workflow_run import (
    COMMITS_JOB,
    ArtifactData,
    JobData,
    StepData,
    WorkflowRun,
    refuse_artifact,
    refuse_unproven,
)
from runners.core.errors import UserError
from tests.bot.forge import objects
from tests.bot.forge.fake import NOW, REPOSITORY, FakeGithub


def make_job(cell: str, conclusion: str = "success", begin: float = 0, prefix: str = "repro / ") -> JobData:
    """Return a job that ran for ten minutes and uploaded its result in the last of them."""
    started, uploading, ended = (NOW + timedelta(minutes=begin + more) for more in (0, 9, 10))
    steps = (
        StepData(name="Run ./.reprobot", conclusion="success", started_at=started, completed_at=uploading),
        StepData(name="Upload the result", conclusion=conclusion, started_at=uploading, completed_at=ended),
    )
    return JobData(name=f"{prefix}probe ({cell})", started_at=started, steps=steps)


def make_artifact(cell: str, minutes: float) -> ArtifactData:
    return ArtifactData(name=f"cell-{cell}", created_at=NOW + timedelta(minutes=minutes))


RUN = WorkflowRun(
    jobs=(
        JobData(name="repro / plan", started_at=NOW),
        make_job("any-1"),
        make_job("any-2", begin=1),
        JobData(name="repro / report", started_at=NOW + timedelta(minutes=11)),
    ),
    artifacts=(make_artifact("any-1", 9.5), make_artifact("any-2", 10.5)),
)
CELLS = ["any-1", "any-2"]


def test_each_result_of_its_own_job_is_accepted() -> None:
    """In a called workflow and in a plain one."""
    assert refuse_unproven(CELLS, RUN) == {}
    plain = replace(RUN, jobs=(make_job("any-1", prefix=""), make_job("any-2", begin=1, prefix="")))
    assert refuse_unproven(CELLS, plain) == {}


@pytest.mark.parametrize(("minutes", "accepted"), [(9.5, True), (5, False)])
def test_a_ranking_is_accepted_from_the_job_that_ranks_alone(minutes: float, accepted: bool) -> None:
    """A job that ran strangers' code may upload an artifact of this name before."""
    ranking = msgspec.structs.replace(make_job(""), name=f"repro / {COMMITS_JOB}")
    run = replace(RUN, jobs=(*RUN.jobs, ranking), artifacts=(*RUN.artifacts, make_artifact(COMMITS_JOB, minutes)))
    assert (refuse_artifact(COMMITS_JOB, COMMITS_JOB, run) is None) is accepted
    assert refuse_artifact(COMMITS_JOB, COMMITS_JOB, RUN) is not None


@pytest.mark.parametrize("minutes", [2, 8, 8.5])
def test_a_result_that_another_job_uploaded_first_is_refused(minutes: float) -> None:
    """The name is taken then, and the upload step of the real job fails."""
    taken = replace(RUN, jobs=(make_job("any-1"), make_job("any-2", "failure", begin=1)))
    taken = replace(taken, artifacts=(make_artifact("any-1", 9.5), make_artifact("any-2", minutes)))
    assert list(refuse_unproven(CELLS, taken)) == ["any-2"]
    lying = replace(taken, jobs=RUN.jobs)  # even if that step had succeeded
    assert list(refuse_unproven(CELLS, lying)) == ["any-2"]


@pytest.mark.parametrize("minutes", [11.5, 15, 60])
def test_a_result_that_replaced_an_uploaded_one_is_refused(minutes: float) -> None:
    """A job may delete another's artifact and upload its own; GitHub dates the new one."""
    replaced = replace(RUN, artifacts=(make_artifact("any-1", 9.5), make_artifact("any-2", minutes)))
    assert list(refuse_unproven(CELLS, replaced)) == ["any-2"]


def test_two_artifacts_of_one_name_are_refused() -> None:
    """Which of them was downloaded is not known."""
    double = replace(RUN, artifacts=(*RUN.artifacts, make_artifact("any-2", 10.6)))
    assert list(refuse_unproven(CELLS, double)) == ["any-2"]


def test_a_job_that_cannot_be_told_from_another_proves_nothing() -> None:
    """No job of the cell's name, two of them, or one without the step."""
    bare = msgspec.structs.replace(RUN.jobs[2], steps=())
    for jobs in (RUN.jobs[:2], (*RUN.jobs, make_job("any-2")), (RUN.jobs[1], bare)):
        assert list(refuse_unproven(CELLS, replace(RUN, jobs=jobs))) == ["any-2"]


def test_a_run_that_was_started_again_counts_with_its_newest_attempt() -> None:
    """Artifacts of earlier attempts stay in GitHub's list; those that expired are not downloaded."""
    again = replace(RUN, jobs=(make_job("any-1"), make_job("any-2", begin=100)))
    artifacts = (*RUN.artifacts, make_artifact("any-2", 109.5))
    assert refuse_unproven(CELLS, replace(again, artifacts=artifacts)) == {}
    expired = msgspec.structs.replace(make_artifact("any-2", 109.6), expired=True)
    assert refuse_unproven(CELLS, replace(again, artifacts=(*artifacts, expired))) == {}


def test_the_run_is_read_from_the_forge(github: FakeGithub, client: GithubForge) -> None:
    """All pages are read. Without the permission, the message names it."""
    step = objects.workflow_step("Upload the result", 2, "success", NOW, NOW)
    github.run_jobs[5] = [
        objects.workflow_job(github.url, REPOSITORY, 5, f"probe (any-{i})", NOW, [step]) for i in range(130)
    ]
    github.run_artifacts[5] = [objects.artifact(github.url, REPOSITORY, f"cell-any-{i}", NOW) for i in range(130)]
    run = fetch_workflow_run(client, REPOSITORY, "5")
    assert (len(run.jobs), len(run.artifacts)) == (130, 130)
    assert refuse_unproven([f"any-{i}" for i in range(130)], run) == {}
    with pytest.raises(UserError, match="actions: read"):
        fetch_workflow_run(client, REPOSITORY, "6")
