"""Formats of other projects, in and out: Hugging Face, CTranslate2 and ONNX."""
