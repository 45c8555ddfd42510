"""The experiments of the structure regularisation paper (Sun, 2014), with edge features."""
