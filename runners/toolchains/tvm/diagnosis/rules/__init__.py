"""Rules that a testcase may break. Each check has a run with the rule kept as its control."""
