from skstruct.export.writers import write_javascript, write_json, write_python

__all__ = ["write_javascript", "write_json", "write_python"]
