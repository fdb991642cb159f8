"""Check the bounds of memory accesses in TVM kernels. Start with `diagnoser`."""
