"""Base of the online taggers that learn from the n best labellings."""

from __future__ import annotations

from numbers import Integral

from sklearn.utils._param_validation import Interval, StrOptions

from skstruct.taggers.nbest import make_search, work_of_search
from skstruct.taggers.online import OnlineTagger

__all__ = ["SearchTagger"]


class SearchTagger(OnlineTagger):
    """Base of the online taggers with the parameters `n_best`, `search` and `beam_width`."""

    _parameter_constraints: dict = {
        **OnlineTagger._parameter_constraints,
        "n_best": [Interval(Integral, 1, None, closed="left")],
        "search": [StrOptions({"astar", "beam"})],
        "beam_width": [Interval(Integral, 1, None, closed="left")],
    }

    def _search(self):
        return make_search(self.n_best, self.search, self.beam_width, count_misses=True)

    @property
    def _work(self):
        beam_width = self.beam_width if self.search == "beam" else 1
        return work_of_search(max(self.n_best, beam_width))

    @property
    def _lists(self):
        # A beam reads scores one by one.
        return self.search == "astar"

    def _search_notes(self, searches, n_visited):
        """The share of the samples whose best labelling a beam missed."""
        if self.search != "beam":
            return {}
        return {"search_misses": sum(int(search.misses[0]) for search in searches) / n_visited}
