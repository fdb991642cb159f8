"""Compare the output of a run with the output that a report quotes: values, and programs."""
