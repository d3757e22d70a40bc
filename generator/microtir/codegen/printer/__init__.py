"""TIR as C text: expressions, statements, functions, and the templates that they stand in."""
