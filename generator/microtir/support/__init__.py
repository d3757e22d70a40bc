"""What all stages use: arguments of public functions, and files, processes and texts of others."""
