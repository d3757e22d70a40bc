"""Models that other frameworks make anew, compared with them where they are installed."""
