"""What every layer may use: storing, threads, histories, sparse rows, fits that fail."""
