"""Rank the commits of a range by how related they are to a report. A ranking, never evidence.

Start with ``rank.py``. ``ranges.py`` chooses the ranges of a report that are ranked. ``observed.py``
finds the parts of the compiler that the runs showed.
"""
