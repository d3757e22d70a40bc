"""What one part of a layer does in another place: rows that change hands, columns in bands."""
