"""One contract, several engines: start strangers' code with nothing of ours in reach."""
