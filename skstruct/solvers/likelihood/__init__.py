"""The likelihood of a CRF: its parameter vector, sums over sequences, and ascent in the dual."""
