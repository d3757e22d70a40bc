"""The C interface of microTVM's applications, beside that of this project."""
