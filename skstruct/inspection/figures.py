"""Axes and heat maps shared by the displays."""

import numpy as np

from skstruct.inspection.models import require

# Rows or columns of a heat map beyond which numbers are illegible.
MOST_NUMBERS = 12


def new_axes(ax, what, **figure):
    """Return the axes given, or new ones, and their figure.

    Parameters
    ----------
    ax : Axes or None
    what : str
        Name of the display, for the error if matplotlib is missing.
    **figure : object
        Keyword arguments of ``plt.subplots``.

    Raises
    ------
    TypeError
        If `ax` is something else.
    """
    require("matplotlib", what)
    if ax is None:
        _, ax = require("matplotlib.pyplot", what).subplots(layout="constrained", **figure)
    if not isinstance(ax, require("matplotlib.axes", what).Axes):
        raise TypeError(
            f"ax must be Axes, such as plt.subplots() or figure.add_subplot() make, got "
            f"{type(ax).__name__}."
        )
    return ax, ax.figure


def panels(ax, what, n_panels, size):
    """Return the axes of several panels, and the axes that they are in.

    Parameters
    ----------
    ax : Axes, array-like of Axes, or None
        One for each panel; or one that is divided; by default, a new figure.
    what : str
        Name of the display.
    n_panels : int
        Number of panels.
    size : tuple of float
        Width and height of a panel in inches.

    Returns
    -------
    axes : list of Axes
    bounding : Axes

    Raises
    ------
    ValueError
        If `ax` has another number of axes, or cannot be divided.
    """
    if isinstance(ax, (list, tuple, np.ndarray)):
        axes = np.ravel(np.asarray(ax, dtype=object)).tolist()
        if len(axes) != n_panels:
            raise ValueError(f"ax has {len(axes)} axes, but there are {n_panels} panels.")
        return axes, axes[0]
    n_columns = min(n_panels, 3)
    n_rows = -(-n_panels // n_columns)
    bounding, figure = new_axes(ax, what, figsize=(size[0] * n_columns, size[1] * n_rows))
    if n_panels == 1:
        return [bounding], bounding
    if bounding.get_subplotspec() is None:
        raise ValueError(
            f"ax cannot be divided into {n_panels} panels: pass axes of a grid, such as from "
            "plt.subplots, or one for each panel."
        )
    grid = bounding.get_subplotspec().subgridspec(n_rows, n_columns)
    bounding.set_axis_off()
    cells = [divmod(k, n_columns) for k in range(n_panels)]
    return [figure.add_subplot(grid[cell]) for cell in cells], bounding


def heat_map(ax, values, rows, columns, *, values_format=None, **image):
    """Draw a matrix with the names of its rows and columns.

    Parameters
    ----------
    ax : Axes
    values : ndarray of shape (n_rows, n_columns)
        Values that are not finite are left out, on a hatched background.
    rows, columns : list
        Names.
    values_format : str, default=None
        Format of the numbers in the cells; with None, there are none.
    **image : object
        Keyword arguments of ``imshow``.

    Returns
    -------
    image : AxesImage
    text : ndarray of Text of the shape of `values`, or None
    """
    rows, columns = list(map(str, rows)), list(map(str, columns))
    shown = np.ma.masked_invalid(values)
    missing = np.ma.getmaskarray(shown)
    if missing.any():
        ax.patch.set(facecolor="0.92", edgecolor="0.75", hatch="///")
    drawn = ax.imshow(shown, aspect="auto", **image)
    # Two dollar signs would make mathematics of a label.
    ax.set_xticks(range(len(columns)), columns, parse_math=False)
    ax.set_yticks(range(len(rows)), rows, parse_math=False)
    if max(map(len, columns), default=0) * len(columns) > 40:
        ax.tick_params(axis="x", rotation=90 if len(columns) > MOST_NUMBERS else 30)
        for name in ax.get_xticklabels():
            name.set_horizontalalignment("center" if len(columns) > MOST_NUMBERS else "right")
    if values_format is None:
        return drawn, None
    text = np.full(values.shape, None, dtype=object)
    for cell in map(tuple, np.argwhere(~missing)):
        red, green, blue, _ = drawn.cmap(drawn.norm(values[cell]))
        dark = 0.3 * red + 0.6 * green + 0.1 * blue < 0.5
        number = format(values[cell], values_format)
        number = number.lstrip("-") if set(number) <= set("-0.") else number
        place = {"ha": "center", "va": "center", "size": "small"}
        text[cell] = ax.text(cell[1], cell[0], number, color="w" if dark else "k", **place)
    return drawn, text


def plain_spines(ax, *hidden):
    """Hide the frame of the axes, on the right and at the top by default."""
    ax.spines[list(hidden or ("top", "right"))].set_visible(False)
