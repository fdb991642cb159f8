"""Run a Python testcase as a plain interpreter does, and record how it ended. Start with `run`."""
