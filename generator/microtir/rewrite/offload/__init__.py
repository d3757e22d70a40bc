"""Rewrites that move a part of a layer elsewhere: rows that change hands, columns in bands."""
