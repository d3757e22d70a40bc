"""Writes and reads Model Library Format 7: microTVM's archive of sources, metadata and weights."""
