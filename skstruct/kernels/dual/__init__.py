"""Dual and stochastic solvers, which take steps of one sequence at a time."""
