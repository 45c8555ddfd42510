"""Input of estimators: X, y and options, checked and converted to what kernels read.

`formats` is the entry: it recognises the format of X and encodes y. `training_set` has the result,
in the layout of the kernels. `class_weight`, `constraints` and `known_labels` read the options of
these names. `copies` are made of lists that another thread may change.
"""
