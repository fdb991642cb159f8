"""Run the testcases of a whole tracker, and write the reports to files."""
