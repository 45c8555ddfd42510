"""Linear chains: what a chain is, the kinds that there are, and the programmes that run on any.

`protocol` says what a chain has to be able to do. Each kind is a file: `dense` (all tokens share
their transition scores), `per_token` (every token has its own), `listed` (mostly zero or minus
infinity) and `second_order` (of triples of labels). Each programme is one, too, and knows no kind:
`viterbi`, `astar`, `beam`, `forward_backward`; `ranges` runs them on many sequences.
"""
