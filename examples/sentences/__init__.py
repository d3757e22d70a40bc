"""A tiny language model of characters, from training to tokens on a board."""
