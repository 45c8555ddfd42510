"""What stored estimators consist of: packed values, and declarations that say what is valid."""
