"""Teaching a quantized language model something new with a low-rank adapter."""
