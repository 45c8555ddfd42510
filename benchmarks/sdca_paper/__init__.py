"""The experiments of the SDCA paper (Le Priol et al., 2018)."""
