"""Diagnose Python programs: their modules as files (``embedded.py``), their calls as commands (``called.py``)."""
