"""Prints what an application sees: header, entry functions, pools, devices, a graph's table."""
