"""Online learners: the epoch, the update rules, and helpers before and after an epoch."""
