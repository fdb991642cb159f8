"""Turn events into runs, and results into answers: commands, permissions, budgets, plans, comments and labels.

Start with ``handle.py``, which answers one request and plans its run. ``deliver.py`` writes the answer to a finished
run. Neither starts a process: a plan leaves as ``plan.json``, and results return as checked files.
"""
