"""Provide builds between two releases: published nightlies, stored artifacts, and builds made on this machine.

Start reading at `source`, the interface of every source of builds. `opening` opens the sources that the operator has
configured, and `commit_range` lists the builds between two versions with their commits. `history` orders the commits
of the main branch; `commit_log` reads their messages and paths; `git` is the only module that runs git.
"""
