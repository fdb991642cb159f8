"""Find undefined reads in TIR functions by interpretation. Start with `diagnoser`."""
