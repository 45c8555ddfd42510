"""The likelihood of a CRF as a function of one parameter vector, and its optimisation."""
