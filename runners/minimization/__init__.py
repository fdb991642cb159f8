"""Reduce a testcase to the parts that its failure needs. Start reading at `minimize.minimize_testcase`."""
