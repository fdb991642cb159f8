"""Interpret TIR functions by the definitions of their statements and expressions."""
