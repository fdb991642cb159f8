"""Turn events into runs, and results into answers: commands, permissions, budgets, plans, comments and labels.

Start with ``handle.py``, which answers one request and plans its run. ``deliver.py`` writes the answer to a finished
run. Both start no process: a plan leaves here as ``plan.json``, and results come back as checked files.
"""
