"""Search for the build with which a behaviour changes. Pure.

- ``releases``: the three-valued search over releases, where runs of one build agree;
- ``noisy``: the mathematics of a search in which runs may mislead and builds may not answer;
- ``commits``: ``noisy`` over a range of nightlies or commits, and the answer for the report.
"""
