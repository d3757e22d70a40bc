"""Hold what several families of operators share."""
