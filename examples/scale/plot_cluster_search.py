"""
Grid search on a cluster
========================

A grid search fits a tagger many times. Each fit is independent of the others, so joblib can send
them to the workers of a Dask cluster, and the search itself stays as it is.
"""

# %%
# A cluster
# ---------
# Two workers in this process show how it works. On a real cluster, the client gets the address of
# the scheduler.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_cluster_search.svg"

import joblib
import matplotlib.pyplot as plt
from distributed import Client
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline

from skstruct import CRFTagger, TemplateVectorizer
from skstruct.datasets import load_addresses
from skstruct.metrics import chunk_f1_scorer

client = Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0")

# %%
# The search
# ----------
# In the context all parallel loops of scikit-learn run on the cluster. Each task gets all data,
# which have to fit on each worker; data that do not are learnt from shards (:doc:`plot_cluster`).

X, y = load_addresses(return_X_y=True)
template = ["U0:%x[0,0|lower]", "U1:%x[-1,0|lower]", "U2:%x[0,0|shape]"]
model = Pipeline([("features", TemplateVectorizer(template)), ("tagger", CRFTagger(tol=1e-3))])
grid = {"tagger__l2": [0.0003, 0.001, 0.003, 0.01, 0.1, 1.0], "features__min_freq": [1, 2]}
folds = KFold(3, shuffle=True, random_state=0)
search = GridSearchCV(model, grid, scoring=chunk_f1_scorer, cv=folds)
with joblib.parallel_config("dask"):
    search.fit(X, y)
print(f"best F1 {search.best_score_:.3f} with {search.best_params_}")

# %%
# Scores
# ------

_, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
results = search.cv_results_
for min_freq in grid["features__min_freq"]:
    chosen = results["param_features__min_freq"] == min_freq
    axes.errorbar(
        results["param_tagger__l2"][chosen].astype(float),
        results["mean_test_score"][chosen],
        results["std_test_score"][chosen],
        marker="o",
        capsize=3,
        label=f"min_freq={min_freq}",
    )
axes.set(xscale="log", xlabel="l2", ylabel="F1 in cross-validation")
axes.legend()

client.close()
