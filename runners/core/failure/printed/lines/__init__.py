"""Compare printed lines with the lines that a report quotes, by words and by numbers with a tolerance. Pure."""
