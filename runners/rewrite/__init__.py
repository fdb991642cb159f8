"""Rewrite a testcase for another release or another device. Start reading at `testcase.py`."""
