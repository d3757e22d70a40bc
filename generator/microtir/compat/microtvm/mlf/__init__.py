"""Model Library Format, version 7: microTVM's archive of sources, metadata and weights."""
