"""Find what a testcase's own text leaves undefined, and confirm it by a run with only that part repaired."""
