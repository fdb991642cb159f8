"""The origin of result artifacts: which job of a workflow run uploaded which artifact. Pure.

Every job of a run may upload an artifact of any name, and delete another's, so the name alone is not proof. GitHub
does not record the uploading job either. It records when each artifact was made and when each step ran, and a name
can be taken only once. So a result is accepted only if the upload step of its own job succeeded, and the artifact was
made while that step ran.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

UPLOAD_STEP = "Upload the result"
"""Name of the step in the workflows that uploads a cell's result."""
COMMITS_JOB = "commits"
"""Name of the job that ranks commits. Its artifact is named as a cell's, ``cell-commits``; no cell has this name."""
CLOCK_SKEW = timedelta(seconds=10)
"""Tolerance: the runner's clock gives the times of a step, GitHub's clock the time of an artifact."""


class StepData(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    conclusion: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None


class JobData(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    """``probe (any)``; in a called workflow, with the caller's job before it: ``repro / probe (any)``."""
    started_at: datetime
    steps: tuple[StepData, ...] = ()


class ArtifactData(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    created_at: datetime | None = None
    expired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRun:
    """The newest attempt of each job of a run, and the run's artifacts."""

    jobs: tuple[JobData, ...]
    artifacts: tuple[ArtifactData, ...]


def refuse_unproven(cells: Iterable[str], run: WorkflowRun) -> dict[str, str]:
    """Return cell → clause on why its artifact is refused, for each cell whose job is not the proven origin."""
    return {cell: why for cell in cells if (why := refuse_artifact(f"probe ({cell})", cell, run)) is not None}


def refuse_artifact(name: str, cell: str, run: WorkflowRun) -> str | None:
    """Return why the artifact of ``cell`` is refused, a clause; None if the job ``name`` is its proven origin."""
    jobs = [job for job in run.jobs if job.name.rpartition(" / ")[2] == name]
    if len(jobs) != 1:
        return f"{len(jobs)} jobs of the run have its name, so its result has no certain origin"
    uploads = [step for step in jobs[0].steps if step.name == UPLOAD_STEP and step.conclusion == "success"]
    if len(uploads) != 1 or uploads[0].started_at is None or uploads[0].completed_at is None:
        return "its job did not upload a result, so the artifact of its name is not its own"
    begin, end = uploads[0].started_at - CLOCK_SKEW, uploads[0].completed_at + CLOCK_SKEW
    # Artifacts of earlier attempts stay in the list.
    own = [one for one in run.artifacts if one.name == f"cell-{cell}" and not one.expired and _is_since(one, jobs[0])]
    if len(own) != 1:
        return f"{len(own)} artifacts of the run have its name, so its result has no certain origin"
    made = own[0].created_at
    if made is None or not begin <= made <= end:
        return "its artifact was not made while its job uploaded a result, so another job made it"
    return None


def _is_since(artifact: ArtifactData, job: JobData) -> bool:
    return artifact.created_at is None or artifact.created_at >= job.started_at - CLOCK_SKEW
