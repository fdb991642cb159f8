"""The contract of a toolchain, and the helpers that the diagnosers of all toolchains share.

Start with `contract`. `facts`, `failures`, `guest`, `reports` and `rewriting` are the vocabularies in which a
toolchain states its facts. `diagnosis` is the contract of a diagnoser; `claims`, `broken_rule` and `memory_fills` are
parts of diagnosers.
"""
