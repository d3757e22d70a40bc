"""Loss, size and speed of quantised networks beside those of other quantisers."""
