"""Settings that all tests share."""

from hypothesis import settings

# No profile has a deadline: a busy machine is not a failure, and no test here asserts how long anything takes.
# `repeatable` derives the examples from the test: the same commit passes or fails on every machine.
settings.register_profile("repeatable", deadline=None, derandomize=True)
# `make fuzz` draws new examples every time. Keep what it finds with `@example`.
settings.register_profile("fuzz", deadline=None, max_examples=1_000, print_blob=True)
settings.load_profile("repeatable")
