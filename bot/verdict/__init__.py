"""Judge recorded runs: observations, findings and the reporter's claim → `Verdict`. Pure.

Start with `judge.judge`. Each question that it asks is one module of ``rules/``; `evidence.Evidence` answers queries
about the runs, and `verdict` declares the types that the reports show.
"""
