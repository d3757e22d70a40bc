"""What users of microTVM bring: flags, names of options, applications, and its archive."""
