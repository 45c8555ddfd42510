"""The border: X and y in any accepted format, checked and brought into one layout."""
