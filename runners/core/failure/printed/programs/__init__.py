"""Compare the programs that passes print, with the report and with each other: MLIR and TVMScript. Pure."""
