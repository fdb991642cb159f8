"""Diagnose TVM testcases inside their own process. Start with `diagnose` and `session`."""
