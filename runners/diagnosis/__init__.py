"""Look for the cause of a failure in further runs. Start reading at ``diagnose.py``.

The diagnosers of one compiler are in ``runners/toolchains/NAME/diagnosis/``. Those for every toolchain are here.
"""
