"""Compiled kernels: arrays in, arrays out, one memory layout, no Python objects.

Each dynamic programme is a serial function of one sequence (`viterbi`, `nbest`,
`forward_backward`), called by a loop over a range of sequences (`decode`, `objective`,
`loop`). All kernels release the GIL: `skstruct.utils.parallel` runs ranges in threads.

Packages import only those before them: ``vector``, ``chain``, then ``online``, ``dual``, ``rerank``
and ``templates``, which do not import each other, and ``likelihood``.

Modules outside import this package and name kernels by it, as in ``kernels.decode_best(...)``.
"""

from skstruct.chain.beam import n_possible
from skstruct.chain.dense import Chain
from skstruct.chain.few import label_few, search_few, weigh_few
from skstruct.chain.kinds import KINDS, kind_of
from skstruct.chain.listed import Leaving, Listed, grow_list, list_chain, list_transitions
from skstruct.chain.protocol import chain_factors, room_of_call
from skstruct.chain.ranges import decode_best, decode_marginals, search_range
from skstruct.chain.scores import Rows, TransitionRows, longest, path_score, sequence_scores
from skstruct.chain.search import SEARCHES, AStarSearch, BeamSearch
from skstruct.chain.spans import Reading, choose_spans, find_spans
from skstruct.kernels.dual.certificate import conjugate_sum, true_gaps
from skstruct.kernels.dual.oeg import Exponentiated, conjugate_to, oeg_steps, start_dual
from skstruct.kernels.dual.problem import Problem, build_tree, renumber_features
from skstruct.kernels.dual.sag import N_SAG_PROGRESS, SAG_SCALE, AverageGradient, sag_steps, settle
from skstruct.kernels.dual.sdca import Dual, Sampling, sdca_updates
from skstruct.kernels.dual.start import mix_with_gold, set_marginals, squared_radii, start_slope
from skstruct.kernels.likelihood.dual_free import Memory, dual_free_epoch, merge_changes
from skstruct.kernels.likelihood.lbfgs import add_scaled, descent_direction, remember
from skstruct.kernels.likelihood.objective import nll_gradient
from skstruct.kernels.likelihood.parameters import (
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
from skstruct.kernels.likelihood.proximal import descend_coordinates, model_rows, remember_step
from skstruct.kernels.online.arow import (
    HAMMING,
    ONE,
    ROOT,
    SHARE,
    Adaptive,
    ConfidentState,
)
from skstruct.kernels.online.loop import (
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
    online_epoch,
    subtract_lag,
)
from skstruct.kernels.online.mira import MAX_PASSES, Margin
from skstruct.kernels.online.perceptron import Mistakes
from skstruct.kernels.online.samples import by_appearance, cut, cut_evenly, mix, reorder
from skstruct.kernels.online.sapo import Expectation
from skstruct.kernels.online.sgd import Likelihood, MarginalLikelihood
from skstruct.kernels.rerank.learn import (
    HINGE,
    LOSSES,
    DescentRule,
    DescentState,
    DualAverage,
    Groups,
    Mean,
    Record,
    Tally,
    descent_epoch,
    dual_weights,
    group_softmax,
    mean_weights,
    pay_all,
    vrda_epoch,
    without_shared,
)
from skstruct.kernels.rerank.vote import Electorate, Histories, build_histories, count_votes
from skstruct.kernels.templates.combine import (
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
from skstruct.kernels.templates.gather import (
    Sources,
    count_columns,
    gather_rows,
    keep_columns,
    mark_used,
)
from skstruct.kernels.vector.columns import sort_rows
from skstruct.kernels.vector.rows import dot

__all__ = [
    "HAMMING",
    "HINGE",
    "KINDS",
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
    "BeamSearch",
    "Chain",
    "ConfidentState",
    "DescentRule",
    "DescentState",
    "Dual",
    "DualAverage",
    "Electorate",
    "EpochResult",
    "Expectation",
    "Exponentiated",
    "Features",
    "Groups",
    "Histories",
    "Leaving",
    "Likelihood",
    "Listed",
    "Margin",
    "MarginalLikelihood",
    "Mean",
    "Memory",
    "Mistakes",
    "OnlineState",
    "Pattern",
    "Pieces",
    "Problem",
    "Reading",
    "Record",
    "Rows",
    "Sampling",
    "Schedule",
    "Sources",
    "StateFeatures",
    "Tally",
    "Tokens",
    "TransitionRows",
    "TransitionStateFeatures",
    "add_margins",
    "add_scaled",
    "build_histories",
    "build_tree",
    "by_appearance",
    "chain_factors",
    "choose_spans",
    "conjugate_sum",
    "conjugate_to",
    "copy_rows",
    "count_columns",
    "count_votes",
    "cut",
    "cut_evenly",
    "decode_best",
    "decode_marginals",
    "descend_coordinates",
    "descent_direction",
    "descent_epoch",
    "dot",
    "dual_free_epoch",
    "dual_weights",
    "fill_slots",
    "find_spans",
    "find_template",
    "find_values",
    "gather_rows",
    "group_by_feature",
    "group_softmax",
    "grow_list",
    "hash_strings",
    "hash_template",
    "keep_columns",
    "kind_of",
    "label_few",
    "lay_out",
    "list_chain",
    "list_transitions",
    "longest",
    "mark_used",
    "mean_weights",
    "merge_changes",
    "mix",
    "mix_with_gold",
    "model_rows",
    "n_possible",
    "nll_gradient",
    "number_template",
    "number_values",
    "oeg_steps",
    "online_epoch",
    "path_score",
    "pay_all",
    "point_to_rows",
    "remember",
    "remember_step",
    "renumber_features",
    "reorder",
    "room_of_call",
    "sag_steps",
    "sdca_updates",
    "search_few",
    "search_range",
    "sequence_scores",
    "set_marginals",
    "settle",
    "sort_rows",
    "squared_radii",
    "start_dual",
    "start_slope",
    "subtract_lag",
    "true_gaps",
    "vrda_epoch",
    "weigh_few",
    "without_shared",
]
