"""What a compilation carries from stage to stage."""
