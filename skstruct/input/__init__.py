"""Input of estimators: X, y and options, checked and converted to what kernels read.

`formats` is the entry: it recognises the format of X, copies lists and encodes y. `training_set`
has the result, with its weights, in the layout of the kernels. `constraints` and `costs` read the
options of these names, and `schemes` knows the label schemes. `scale` checks for values and weights
that are too large.
"""
