"""Run one process in a sandbox: one contract, several engines.

Start reading at `contract`, which lists the promises of every engine. `select` chooses the engine for a machine and
removes leftovers of killed runs. The engines are `containers` (docker, podman, gVisor), `bubblewrap` and
`unprotected`; `limits` contains the kernel's limits that they share. The conformance kit in ``tests/runners/sandbox``
attacks each engine.
"""
