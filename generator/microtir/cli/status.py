"""Defines the exit statuses that the process itself gives; those of verbs are in `cli.main`."""

INTERRUPTED = 130  # by Ctrl-C, as shells count it
