"""Dynamic programmes on one chain: scores, Viterbi, n best, marginals."""
