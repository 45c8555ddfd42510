"""The objective of a CRF as a function of one parameter vector."""
