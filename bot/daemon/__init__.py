"""The bot as a long-running process: events in by webhook or polling, answers out, every step kept on disk.

Start with ``watch.py``, the loop; ``steps.py`` holds the steps of one event, ``ledger.py`` the database.
"""
