"""Find what a testcase's own text leaves undefined, and confirm by a run with only that part mended."""
