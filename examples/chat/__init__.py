"""A conversation with a language model of the llama family, from a GGUF file."""
