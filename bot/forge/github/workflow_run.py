"""Read a workflow run from GitHub: its jobs with their steps, and its artifacts."""

from __future__ import annotations

import msgspec

from bot.forge.github.answers import translate_errors
from bot.forge.github.forge import GithubForge
from bot.forge.workflow_run import ArtifactData, JobData, WorkflowRun
from runners.core.errors import InfraError

MAX_PAGES = 10


class _Jobs(msgspec.Struct, frozen=True):
    total_count: int
    jobs: tuple[JobData, ...]


class _Artifacts(msgspec.Struct, frozen=True):
    total_count: int
    artifacts: tuple[ArtifactData, ...]


def fetch_workflow_run(forge: GithubForge, repository: str, run: str) -> WorkflowRun:
    """Return the newest attempt of each job, and all artifacts, of the run with the number ``run``.

    Raises:
        UserError: the token may not read the run: the job needs ``actions: read``.
        InfraError: GitHub does not answer, or the run has more than a thousand jobs or artifacts.
    """
    jobs: list[JobData] = []
    artifacts: list[ArtifactData] = []
    with translate_errors("the jobs and artifacts of this run (permission actions: read)"):
        for page in range(1, MAX_PAGES + 1):
            found = msgspec.convert(_fetch_page(forge, repository, run, "jobs", page, filter="latest"), _Jobs)
            jobs.extend(found.jobs)
            if len(jobs) >= found.total_count or not found.jobs:
                break
        else:
            raise InfraError(f"the run has {found.total_count} jobs, more than are read")
        for page in range(1, MAX_PAGES + 1):
            listed = msgspec.convert(_fetch_page(forge, repository, run, "artifacts", page), _Artifacts)
            artifacts.extend(listed.artifacts)
            if len(artifacts) >= listed.total_count or not listed.artifacts:
                break
        else:
            raise InfraError(f"the run has {listed.total_count} artifacts, more than are read")
    return WorkflowRun(jobs=tuple(jobs), artifacts=tuple(artifacts))


def _fetch_page(forge: GithubForge, repository: str, run: str, part: str, page: int, **query: str) -> object:
    url = f"/repos/{repository}/actions/runs/{run}/{part}"
    parameters = {**query, "per_page": "100", "page": str(page)}
    return forge.reads.requester.requestJsonAndCheck("GET", url, parameters=parameters)[1]
