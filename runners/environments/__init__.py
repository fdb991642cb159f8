"""Provide releases and nightlies as environments: find the builds, resolve their dependencies, keep them on disk.

Start reading at `store`: a release and a testcase's requirements become an environment, which is complete on disk or
absent. `resolve` finds the wheels, `wheels` unpacks them and `atomic_dirs` manages folders that appear by one rename.
`wheel_sources` and `refresh` find builds beyond the packaged catalogue; `config` reads the operator's file.
"""
