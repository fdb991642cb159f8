"""Turn the command lines of an issue into the steps of a testcase. Start with `testcase.extract_commands`."""
