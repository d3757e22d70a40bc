"""Graphs as files have them, as the operators of this compiler: layouts, loops, integers."""
