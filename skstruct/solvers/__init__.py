"""Ways to minimise the objective of a conditional random field.

`registry` says which solvers exist and what each supports. `base` defines what a solver is given
and what it returns; `watcher` scores a held-out set on the way. The solvers themselves are `batch`
(L-BFGS), `sag`, `oeg` and `sdca`; the others are optimisers and objectives that they are made of.
"""
