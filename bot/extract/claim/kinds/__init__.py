"""Find the kind of failure that a report claims: by its words first, then by the output that it quotes."""
