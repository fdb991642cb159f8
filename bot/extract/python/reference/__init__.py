"""Find the reference with which a testcase compares the results of the compiler."""
