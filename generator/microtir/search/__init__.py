"""Searches: callers of the driver that try configurations and measure what they cost."""
