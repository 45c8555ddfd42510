"""
Label the waves of an electrocardiogram
=======================================

A sequence need not be text. Here it is a signal, and its tokens are samples with real-valued
features. A heartbeat has three waves, called P, QRS and T, which follow each other in this order. A
classifier of single samples does not know the order; a conditional random field does, and a
constraint enforces it.

The signals are simulated, so that the example needs no data. They have what makes real ones hard:
noise, a wandering baseline, and beats of different length and height.
"""

# %%
# Signals
# -------
# A record has 8 seconds at 50 samples a second. A wave is a bump in the beat, whose place, height
# and width vary a little. The labels say where its bump is above a tenth of its height.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_signals.svg"

from itertools import groupby

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter1d
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from skstruct import CRFTagger

RATE, SECONDS = 50, 8
# Time after the beginning of the beat, width and height.
WAVES = {"P": (0.15, 0.030, 0.18), "QRS": (0.32, 0.016, 1.0), "T": (0.58, 0.050, 0.30)}


def record(random_state):
    """Simulate a record: signal and labels."""
    time = np.arange(RATE * SECONDS) / RATE
    signal = random_state.normal(scale=0.06, size=len(time))
    signal += 0.25 * np.sin(2 * np.pi * (0.3 * time + random_state.uniform()))
    labels = np.full(len(time), "-", dtype=object)
    start, pulse = -random_state.uniform(0, 0.8), random_state.uniform(0.8, 1.1)
    while start < SECONDS:
        for wave, (place, width, height) in WAVES.items():
            center = start + place + random_state.normal(scale=0.012)
            width = width * random_state.uniform(0.8, 1.25)
            bump = np.exp(-0.5 * ((time - center) / width) ** 2)
            signal += height * random_state.uniform(0.7, 1.3) * bump
            labels[bump > 0.1] = wave
        start += pulse * random_state.uniform(0.85, 1.15)
    return signal, labels


random_state = np.random.RandomState(0)
signals, labels = zip(*(record(random_state) for _ in range(60)), strict=True)

# %%
# Features
# --------
# A sample is described by the signal around it, smoothed at several widths, and by slope and
# curvature at the same widths. They are whitened, as correlated features are slow to learn. Their
# products let a linear model tell a wave from noise.


def features(signal):
    """Describe the samples of a signal; an array of shape (n_samples, 9)."""
    widths = (1, 2, 4)
    return np.column_stack(
        [gaussian_filter1d(signal, width, order=n) for width in widths for n in range(3)]
    )


prepare = make_pipeline(PCA(whiten=True), PolynomialFeatures(2, include_bias=False))
prepare.fit(np.concatenate([features(signal) for signal in signals]))
X = [prepare.transform(features(signal)) for signal in signals]
y = [list(part) for part in labels]
X_train, y_train, X_test, y_test = X[:30], y[:30], X[30:], y[30:]

# %%
# Order of the waves
# ------------------
# A label may follow itself. Otherwise P comes after a pause, then QRS, then T, then a pause, and
# there may be a pause between any two waves of a beat. The constraint forbids all else.

classes = ["-", "P", "QRS", "T"]
possible = np.eye(4, dtype=bool)
for a, b in ["-P", "P-", ("P", "QRS"), ("-", "QRS"), ("QRS", "-"), ("QRS", "T"), "-T", "T-"]:
    possible[classes.index(a), classes.index(b)] = True

alone = LogisticRegression(C=1 / 10, max_iter=1000).fit(
    np.concatenate(X_train), np.concatenate(y_train)
)
free = CRFTagger(l2=10, tol=1e-2).fit(X_train, y_train)
ordered = CRFTagger(l2=10, tol=1e-2, constraint=possible).fit(X_train, y_train)
predictions = {
    "single samples": [alone.predict(x) for x in X_test],
    "CRF": free.predict(X_test),
    "CRF with the order": ordered.predict(X_test),
}

# %%
# Waves found
# -----------
# A wave is found if it begins and ends within two samples of a true one.


def waves(sequence):
    """List the waves of a record: name, first sample, last sample."""
    runs = [list(places) for _, places in groupby(range(len(sequence)), lambda i: sequence[i])]
    return [(sequence[run[0]], run[0], run[-1]) for run in runs if sequence[run[0]] != "-"]


def f1(predicted):
    """F1 of the waves."""
    hits = total = 0
    for gold, found in zip(y_test, predicted, strict=True):
        gold, found = waves(gold), waves(found)
        total += len(gold) + len(found)
        for name, a, b in gold:
            hits += any(name == n and abs(a - c) <= 2 and abs(b - d) <= 2 for n, c, d in found)
    return 2 * hits / total


truth = np.concatenate(y_test)
for name, predicted in predictions.items():
    right = np.mean(np.concatenate(list(predicted)) == truth)
    print(f"{name:20} {right:.1%} of the samples, F1 of the waves {f1(predicted):.3f}")

# %%
# A record
# --------
# The one with the most mistakes of the classifier of single samples.

mistakes = [np.sum(a != b) for a, b in zip(predictions["single samples"], y_test, strict=True)]
shown = int(np.argmax(mistakes))
time = np.arange(RATE * SECONDS) / RATE
colors = {"P": "tab:green", "QRS": "tab:red", "T": "tab:blue"}
rows = {"true": y_test[shown], **{name: found[shown] for name, found in predictions.items()}}
places = [-0.8 - 0.22 * row for row in range(len(rows))]

fig, ax = plt.subplots(figsize=(9, 4), layout="constrained")
ax.plot(time, signals[30 + shown], color="black", linewidth=0.8)
for place, sequence in zip(places, rows.values(), strict=True):
    for name, a, b in waves(sequence):
        bar = {"left": time[a], "width": (b - a + 1) / RATE, "height": 0.16}
        ax.barh(place, color=colors[name], **bar)
ax.set_yticks([0, 1, *places], ["0", "1", *rows])
ax.set(xlabel="seconds", xlim=(0, SECONDS))
ax.legend([plt.Rectangle((0, 0), 1, 1, color=color) for color in colors.values()], colors, ncols=3)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
