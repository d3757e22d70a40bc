"""A small convolutional network for handwritten digits, from training to C."""
