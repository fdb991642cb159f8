"""Find whether a testcase checks the results of the compiler, and what it compares them with."""
