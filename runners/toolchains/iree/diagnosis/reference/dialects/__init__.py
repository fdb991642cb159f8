"""Run the operations of the dialects that a program may use."""
