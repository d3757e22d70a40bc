"""Tries configurations and measures what they cost, by calling the driver."""
