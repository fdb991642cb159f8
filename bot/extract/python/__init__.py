"""Assemble the Python pieces of an issue into one program. Start with `testcase.extract_python`."""
