"""Read and write the files that jobs exchange: ``plan.json`` (checked by sha256) and ``results/<cell>.json``."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import msgspec

from runners.core.errors import InfraError, UserError
from runners.core.protocol import MAX_PLAN_BYTES, SCHEMA, CellResult, JobPlan


def read_plan(data: bytes, digest: str) -> JobPlan:
    """Decode ``plan.json``.

    Raises:
        UserError: the data has another sha256, or is not a plan of this version.
    """
    if len(data) > MAX_PLAN_BYTES:
        raise UserError(f"the plan has more than {MAX_PLAN_BYTES // 1024} KiB: it is none of ours")
    if (found := sha256(data).hexdigest()) != digest:
        raise UserError(
            f"the plan's sha256 is {found}, not {digest[:64]!r}: it was changed on its way, or is another"
        )
    try:
        plan = msgspec.json.decode(data, type=JobPlan)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"the plan cannot be read ({str(error)[:200]}): was it made by another version?") from None
    if plan.schema != SCHEMA:
        raise UserError(f"the plan has schema {plan.schema}, this is {SCHEMA}: use one version for all jobs")
    return plan


def write_result(result: CellResult, folder: Path) -> Path:
    """Write ``folder/<cell>.json`` atomically, and return its path.

    Raises:
        InfraError: the file cannot be written.
    """
    path = folder / f"{result.cell}.json"
    part = folder / f".{result.cell}.{os.getpid()}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part.write_bytes(msgspec.json.encode(result))
        part.replace(path)
    except OSError as error:
        raise InfraError(f"{path} cannot be written: {error.strerror}") from None
    return path
