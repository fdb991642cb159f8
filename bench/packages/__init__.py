"""PyTorch and ONNX beside every release: their cost, and small programs that use TVM's frontends."""
