"""ONNX export: graphs, their inputs and outputs, and a program that runs them."""
