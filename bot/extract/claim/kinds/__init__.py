"""What kind of failure a report claims: by its words first, then by the output that it quotes."""
