"""Choose the width of each layer under limits on loss, flash and RAM."""
