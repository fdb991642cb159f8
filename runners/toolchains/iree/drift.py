"""Flags, operations and dialects of IREE that a release moved, removed or introduced.

``flags.json`` lists the flags that some release lacks, by the help of all releases' programs.
"""

from __future__ import annotations

import json
from importlib import resources

from runners.core.toolchain.facts import DriftEntry

_SUCCESSORS = {
    "--iree-llvmgpu-enable-prefetch": "--iree-llvmgpu-prefetch-num-stages",
    "--iree-dispatch-creation-experimental-data-tiling": "--iree-dispatch-creation-data-tiling",
    "--iree-stream-external-resources-mappable": "--iree-hal-external-resources-mappable",
    "--iree-opt-import-parameters": "--iree-parameter-import",
    "--iree-opt-import-parameter-keys": "--iree-parameter-import-keys",
    "--iree-opt-import-parameter-maximum-size": "--iree-parameter-import-maximum-size",
    "--iree-opt-export-parameter-minimum-size": "--iree-parameter-export-minimum-size",
}
"""Renamed flags. In addition, every ``--iree-hip-`` flag that 3.12.0 removed became an ``--iree-rocm-`` flag."""

_NOT_EXACT = {"--iree-llvmgpu-enable-prefetch": "a switch became a number of stages"}

_VALUES = tuple(
    DriftEntry(
        old=f"--iree-hal-target-device={backend}",
        new=f"--iree-hal-target-backends={backend}",
        kind="flag",
        gone_in="3.4.0",
        exact=True,
        note="backends are no devices any more; the successor works on every release",
    )
    for backend in ("llvm-cpu", "vmvx")
)

_RENAMED_IN_2023 = {"--module_file": "--module", "--entry_function": "--function", "--function_input": "--input"}
_RUNTIME = tuple(
    DriftEntry(old=old, new=new, kind="flag", gone_in="2.9.0", exact=True, note="renamed on 2023-02-01 (#12010)")
    for old, new in _RENAMED_IN_2023.items()
)
"""Flags of the runtime's tools that were renamed before the first numbered release. Older reports use them."""

_DIALECT = (
    DriftEntry(
        old="flow.dispatch.tensor",
        new="iree_tensor_ext.dispatch.tensor",
        kind="dialect",
        gone_in="3.4.0",
        introduced_in="3.4.0",
        exact=True,
    ),
    DriftEntry(
        old="iree_linalg_ext.map_scatter",
        new="iree_linalg_ext.map_store",
        kind="op",
        gone_in="3.11.0",
        introduced_in="3.11.0",
        exact=True,
    ),
    DriftEntry(
        old="iree_linalg_ext.attention",
        new="iree_linalg_ext.attention",
        kind="op",
        gone_in="3.13.0",
        introduced_in="3.13.0",
        note="its properties moved from {…} to <{…}>",
    ),
)


Span = tuple[str | None, str | None]
"""First release with a flag (None: the oldest has it), first release without it again (None: the newest has it)."""


def _load_spans() -> dict[str, Span]:
    """Load the spans of all flags that some release lacks."""
    document = json.loads((resources.files("runners.toolchains.iree") / "flags.json").read_bytes())
    return {
        flag: (since, gone)
        for tool in ("iree-opt", "iree-run-module", "iree-compile")
        for flag, (since, gone) in document["tools"][tool].items()
    }


def _list_flag_drift(spans: dict[str, Span]) -> tuple[DriftEntry, ...]:
    return tuple(_make_flag_entry(flag, *span, spans) for flag, span in sorted(spans.items()))


def _make_flag_entry(flag: str, since: str | None, gone: str | None, spans: dict[str, Span]) -> DriftEntry:
    if gone is None:
        return DriftEntry(old=flag, new=flag, kind="flag", introduced_in=since, note=f"unknown before {since}")
    new = _SUCCESSORS.get(flag) or flag.replace("--iree-hip-", "--iree-rocm-")
    known = new != flag and spans.get(new, (None, gone))[1] is None
    return DriftEntry(
        old=flag,
        new=new if known else None,
        kind="flag",
        gone_in=gone,
        introduced_in=spans[new][0] if known and new in spans else None,
        exact=known and flag not in _NOT_EXACT,
        note=_NOT_EXACT.get(flag) or (f"first in {since}" if since else ""),
    )


DRIFT = (*_VALUES, *_RUNTIME, *_DIALECT, *_list_flag_drift(_load_spans()))
