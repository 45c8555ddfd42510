from .chain.decode import decode_best, decode_best_sparse
from .chain.listed import IntoLabels, SparseTransitions, list_transitions, read_scores
from .chain.marginals import decode_marginals, decode_marginals_sparse
from .chain.nbest import n_possible
from .chain.scores import (
    Chain,
    Rows,
    TransitionChain,
    TransitionRows,
    longest,
    path_score,
    sequence_scores,
)
from .chain.search import SEARCHES, AStarSearch, PrefixSearch, search_range
from .chain.sparse_forward_backward import SparseFactors, sparse_factors
from .chain.transitions import transition_tables
from .dual.certificate import conjugate_sum, true_gaps
from .dual.oeg import Exponentiated, conjugate_to, oeg_steps, start_dual
from .dual.problem import Problem, renumber_features
from .dual.sag import N_SAG_PROGRESS, SAG_SCALE, AverageGradient, sag_steps, settle
from .dual.sampling import build_tree
from .dual.sdca import Dual, Sampling, sdca_updates
from .dual.start import mix_with_gold, set_marginals, squared_radii, start_slope
from .likelihood.dual_free import Memory, dual_free_epoch
from .likelihood.lbfgs import add_scaled, descent_direction, remember
from .likelihood.objective import nll_gradient
from .likelihood.parameters import (
    LABEL_TYPE,
    MOST_LABELS,
    TRANSITION_TYPE,
    StateFeatures,
    TransitionStateFeatures,
    copy_rows,
    group_by_feature,
    lay_out,
    point_to_rows,
)
from .likelihood.proximal import descend_coordinates, model_rows, remember_step
from .likelihood.sparse import sparse_dual_free_epoch, sparse_nll_gradient
from .online.appearance import by_appearance, reorder
from .online.arow import HAMMING, ONE, ROOT, SHARE, Adaptive, ConfidentState, arow_epoch
from .online.cut import cut, cut_evenly
from .online.listed import ListedConfidentState, ListedState
from .online.loop import (
    N_PROGRESS,
    NORM,
    RATE,
    SCALE,
    SEEN,
    SMALLEST_SCALE,
    TOTAL,
    EpochResult,
    OnlineState,
    Schedule,
    subtract_lag,
)
from .online.mira import MAX_PASSES, Margin, mira_epoch
from .online.mixing import mix
from .online.partial import partial_crf_epoch
from .online.perceptron import perceptron_epoch
from .online.sapo import sapo_epoch
from .online.sgd import crf_epoch
from .rerank.learn import (
    DescentRule,
    DescentState,
    DualAverage,
    Groups,
    Mean,
    Record,
    Tally,
    descent_epoch,
    dual_weights,
    mean_weights,
    pay_all,
    vrda_epoch,
    without_shared,
)
from .rerank.losses import HINGE, LOSSES, group_softmax
from .rerank.vote import Electorate, Histories, build_histories, count_votes
from .templates.combine import (
    NOT_FOUND_YET,
    Features,
    Pattern,
    Pieces,
    Tokens,
    add_margins,
    fill_slots,
    find_template,
    find_values,
    hash_strings,
    hash_template,
    number_template,
    number_values,
)
from .templates.gather import Sources, count_columns, gather_rows, keep_columns, mark_used
from .vector.columns import sort_rows
from .vector.sums import dot

__all__ = [
    "HAMMING",
    "HINGE",
    "LABEL_TYPE",
    "LOSSES",
    "MAX_PASSES",
    "MOST_LABELS",
    "NORM",
    "NOT_FOUND_YET",
    "N_PROGRESS",
    "N_SAG_PROGRESS",
    "ONE",
    "RATE",
    "ROOT",
    "SAG_SCALE",
    "SCALE",
    "SEARCHES",
    "SEEN",
    "SHARE",
    "SMALLEST_SCALE",
    "TOTAL",
    "TRANSITION_TYPE",
    "AStarSearch",
    "Adaptive",
    "AverageGradient",
    "Chain",
    "ConfidentState",
    "DescentRule",
    "DescentState",
    "Dual",
    "DualAverage",
    "Electorate",
    "EpochResult",
    "Exponentiated",
    "Features",
    "Groups",
    "Histories",
    "IntoLabels",
    "ListedConfidentState",
    "ListedState",
    "Margin",
    "Mean",
    "Memory",
    "OnlineState",
    "Pattern",
    "Pieces",
    "PrefixSearch",
    "Problem",
    "Record",
    "Rows",
    "Sampling",
    "Schedule",
    "Sources",
    "SparseFactors",
    "SparseTransitions",
    "StateFeatures",
    "Tally",
    "Tokens",
    "TransitionChain",
    "TransitionRows",
    "TransitionStateFeatures",
    "add_margins",
    "add_scaled",
    "arow_epoch",
    "build_histories",
    "build_tree",
    "by_appearance",
    "conjugate_sum",
    "conjugate_to",
    "copy_rows",
    "count_columns",
    "count_votes",
    "crf_epoch",
    "cut",
    "cut_evenly",
    "decode_best",
    "decode_best_sparse",
    "decode_marginals",
    "decode_marginals_sparse",
    "descend_coordinates",
    "descent_direction",
    "descent_epoch",
    "dot",
    "dual_free_epoch",
    "dual_weights",
    "fill_slots",
    "find_template",
    "find_values",
    "gather_rows",
    "group_by_feature",
    "group_softmax",
    "hash_strings",
    "hash_template",
    "keep_columns",
    "lay_out",
    "list_transitions",
    "longest",
    "mark_used",
    "mean_weights",
    "mira_epoch",
    "mix",
    "mix_with_gold",
    "model_rows",
    "n_possible",
    "nll_gradient",
    "number_template",
    "number_values",
    "oeg_steps",
    "partial_crf_epoch",
    "path_score",
    "pay_all",
    "perceptron_epoch",
    "point_to_rows",
    "read_scores",
    "remember",
    "remember_step",
    "renumber_features",
    "reorder",
    "sag_steps",
    "sapo_epoch",
    "sdca_updates",
    "search_range",
    "sequence_scores",
    "set_marginals",
    "settle",
    "sort_rows",
    "sparse_dual_free_epoch",
    "sparse_factors",
    "sparse_nll_gradient",
    "squared_radii",
    "start_dual",
    "start_slope",
    "subtract_lag",
    "transition_tables",
    "true_gaps",
    "vrda_epoch",
    "without_shared",
]
