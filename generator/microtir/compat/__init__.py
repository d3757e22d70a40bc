"""Serves programs that were written for other frameworks."""
