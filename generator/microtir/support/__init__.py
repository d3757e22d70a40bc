"""Serves all stages: checks arguments, and handles files, processes and texts of others."""
