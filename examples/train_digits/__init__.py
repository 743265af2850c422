"""Training from the first step to the checkpoint: handwritten digits."""
