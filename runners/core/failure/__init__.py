"""Read failures from text and records, compare them, and classify runs by them. Pure.

Start with `oracle.classify_run`, which decides whether one run shows the reported failure. `parse` and
`exception_chain` read a failure; `compare` decides whether two failures are the same. A `FailureVocabulary` supplies
all facts about one compiler.
"""
