"""Reports on a compiled model: its memory over time, its layers, and whether it fits.

`collect.describe` calls the driver and returns facts (`data.Report`); `html` and `text` lay the
same facts out.
"""
