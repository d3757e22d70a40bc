"""Rewrites that give work to others: rows that change hands with the caller."""
