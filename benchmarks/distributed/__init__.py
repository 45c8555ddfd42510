"""Learning from partitions on a Dask cluster, beside one process."""
