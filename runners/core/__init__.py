"""The part that ``bot`` and ``runners`` share: types, failure texts, searches, and the contract of a toolchain.

Pure, except the modules that read or write files: `database`, `job_files`, `packages.catalogue` and
`hostile.folders`.

Start with `protocol`: every type that crosses between the two. `findings` is the table of the kinds of finding,
`packages` the list of all builds, `toolchain` the contract of a compiler. `failure` reads and compares failures,
`bisection` searches for changes, and `hostile` handles texts and folders of any depth.
No module here imports another part of the project.
"""
