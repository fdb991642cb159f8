"""The diagnosers of Python programs: modules as files (``embedded.py``), calls as commands (``called.py``)."""
