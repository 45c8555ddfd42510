"""Ways to minimise the objective of a conditional random field."""
