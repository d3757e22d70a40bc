"""Pages of the documentation, executed with the frameworks of today."""
