"""The steps of the driver, each a module."""
