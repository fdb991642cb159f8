"""Find passes and dispatches in the compilation and the runs of IREE command lines. Start with `pass_bisect`."""
