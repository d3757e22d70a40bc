"""Serves users of microTVM: its flags, names of options, applications, and its archive."""
