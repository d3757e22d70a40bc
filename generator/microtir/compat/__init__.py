"""What programs for other frameworks expect of microtir."""
