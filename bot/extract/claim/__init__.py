"""Read the claim of a report: the failure that the reporter describes. Start with `read.read_claim`."""
