"""Work of the commands: what they call after their options are read, and what that needs."""
