"""What an application sees: header, entry functions, pools, devices, the table of a graph."""
