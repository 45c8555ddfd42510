"""The loop of the online learners, their update rules, and what surrounds an epoch."""
