"""Read MLIR as text: its brackets, its types and its operations. Pure.

Every function takes any text, without recursion and in time linear in its length. Text that is not MLIR gives an
empty answer, never an exception.
"""
