"""The bot as a long-running process: it gets events by webhook or polling, answers, and keeps every step on disk.

Start with ``watch.py``, the loop; ``steps.py`` has the steps of one event, ``ledger.py`` the database.
"""
