"""Check the modules before and after each TVM pass that a testcase applies."""
