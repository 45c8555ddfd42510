"""Feature templates: values combined, numbered and gathered."""
