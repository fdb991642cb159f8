"""Find what a testcase compares the results of the compiler with."""
