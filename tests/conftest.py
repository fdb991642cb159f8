"""Settings that all tests share."""

from hypothesis import settings

# A busy machine is not a failure: no test here asserts how long anything takes.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
