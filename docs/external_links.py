"""Links that Sphinx does not resolve: short names, and names of other libraries.

Intersphinx would download an inventory for each library at every build. But the address of a page
follows from the name it is about, and the installed libraries tell which names there are.
"""

from importlib import import_module

from docutils import nodes

import skstruct

PAGES = {
    "sklearn": "https://scikit-learn.org/stable/modules/generated/{}.html",
    "numpy": "https://numpy.org/doc/stable/reference/generated/{}.html",
    "scipy": "https://docs.scipy.org/doc/scipy/reference/generated/{}.html",
    "pandas": "https://pandas.pydata.org/docs/reference/api/{}.html",
}
# Modules whose names may stand without the module, as in `Pipeline`.
FAMILIAR = (
    "sklearn.compose",
    "sklearn.feature_extraction",
    "sklearn.feature_extraction.text",
    "sklearn.linear_model",
    "sklearn.metrics",
    "sklearn.model_selection",
    "sklearn.pipeline",
    "sklearn.preprocessing",
)


def find_page(target):
    """Address of the page about a name, or None.

    >>> find_page("sklearn.pipeline.Pipeline")
    'https://scikit-learn.org/stable/modules/generated/sklearn.pipeline.Pipeline.html'
    >>> find_page("GridSearchCV.fit").rpartition("/")[2]
    'sklearn.model_selection.GridSearchCV.html#sklearn.model_selection.GridSearchCV.fit'
    """
    first = target.partition(".")[0]
    if first not in PAGES:
        modules = [module for module in FAMILIAR if first in import_module(module).__all__]
        if not modules:
            return None
        target = f"{modules[0]}.{target}"
    page = locate(target)
    if page is None:
        return None
    address = PAGES[target.partition(".")[0]].format(page)
    return address if page == target else f"{address}#{target}"


def locate(name):
    """Class or function whose page tells about a name; None if there is no such name."""
    parts = name.split(".")
    for n in range(len(parts) - 1, 0, -1):
        try:
            value = import_module(".".join(parts[:n]))
        except ImportError:
            continue
        page = None
        for i, part in enumerate(parts[n:], n + 1):
            if not hasattr(value, part):
                return None
            value = getattr(value, part)
            # Methods and attributes are on the page of their class.
            page = page or ".".join(parts[:i])
        return page
    return None


def resolve(app, env, node, contnode):
    """Resolve references to names at the top of the package, and to those of other libraries.

    Docstrings of subpackages, too, name a tagger without its package.
    """
    if node.get("refdomain") != "py":
        return None
    if node["reftarget"].partition(".")[0] in skstruct.__all__:
        where = node["refdoc"], app.builder, "obj", f"skstruct.{node['reftarget']}"
        return env.get_domain("py").resolve_xref(env, *where, node, contnode)
    address = find_page(node["reftarget"])
    if address is None:
        return None
    link = nodes.reference("", "", internal=False, refuri=address)
    link += contnode
    return link


def setup(app):
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True}
