"""The module and the program: what a compilation carries from stage to stage."""
