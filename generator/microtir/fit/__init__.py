"""Searches over complete programs: for limits, and for trades of memory and speed."""
