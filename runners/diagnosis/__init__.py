"""Look for the cause of a failure in further runs. Start reading at ``diagnose.py``.

The diagnosers of one compiler lie in its folder, ``runners/toolchains/NAME/diagnosis/``; here are those that hold for
any toolchain.
"""
