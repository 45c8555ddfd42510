"""The experiments of the SAPO and structure regularisation papers (Sun, 2014-2018)."""
