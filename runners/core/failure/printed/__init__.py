"""Compare the text that a run prints with the text that a report quotes: values, and programs."""
