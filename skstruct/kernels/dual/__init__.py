"""Dual and stochastic ascent: steps by one sequence at a time."""
