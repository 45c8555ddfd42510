"""The experiments of the VRDA paper on n-best lists."""
