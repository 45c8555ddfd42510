"""Configuration of the documentation: ``sphinx-build -W -b html docs docs/_build/html``.

The build needs no network. Examples on a public corpus run only if the corpus is already on disk,
and those with other packages only if these are installed; otherwise only their source is shown.
"""

import ast
import os
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import skstruct
from skstruct.datasets import fetch_conll2000, fetch_conll2002, fetch_ocr_letters
from skstruct.learning.solver import SOLVERS, support_table

# The folder's own extensions, and the benchmarks, behind the package that is installed.
ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))
sys.path.append(str(ROOT))
import address_tagger  # noqa: E402

URLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]

project = "skstruct"
author = "The skstruct developers"
copyright = author
version = release = skstruct.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    # Formulas without a network.
    "sphinx-mathjax-offline",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "external_links",
]
templates_path = ["_templates"]
exclude_patterns = [
    "_build",
    "benchmarks/generated",
    "generated/solvers.rst",
    "auto_examples/**/*.py",
    "auto_examples/**/*.ipynb",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
default_role = "py:obj"
add_function_parentheses = False
add_module_names = False
# On the page of a class, names of methods are short enough for the list at its right.
toc_object_entries_show_parents = "hide"

autosummary_generate = True
autosummary_imported_members = False
numpydoc_show_class_members = False
myst_heading_anchors = 2
myst_enable_extensions = ["dollarmath"]


# Copy buttons leave out prompts and printed output.
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_selector = "div:not(.sphx-glr-script-out) > div.highlight > pre"


def write_solver_table():
    """Write the table of the guide that says what each solver supports."""
    marks = {True: "✓", False: "–"}
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for first, *others in [("", *(f'``"{name}"``' for name in SOLVERS)), *support_table()]:
        lines.append(f"   * - {first}")
        lines += [f"     - {marks.get(cell, cell)}" for cell in others]
    folder = Path(__file__).parent / "generated"
    folder.mkdir(exist_ok=True)
    (folder / "solvers.rst").write_text("\n".join(lines) + "\n", encoding="utf-8")


write_solver_table()
# Scripts that are made of a model: the box of the home page imports them.
SCRIPTS = Path(__file__).parent / "generated" / "scripts"
address_tagger.write(SCRIPTS)


def is_on_disk(fetch, *subsets):
    """Tell if a corpus can be read without a download."""
    try:
        for subset in subsets:
            fetch(subset=subset, download_if_missing=False)
    except OSError:
        return False
    return True


def has_column_files(name):
    """Tell if a folder of the data has the column files of a corpus."""
    folder = Path(os.environ.get("SKSTRUCT_DATA", "")) / name
    return all((folder / f"{subset}.txt.gz").exists() for subset in ("train", "test"))


# What the examples need that cannot be taken for granted.
conll2000 = is_on_disk(fetch_conll2000, "train", "test")
CAN_RUN = {
    "chunking": conll2000,
    "word_segmentation": conll2000,
    "handwritten_words": is_on_disk(fetch_ocr_letters, "train", "test"),
    "spanish_names": is_on_disk(fetch_conll2002, "train", "testb"),
    "biomedical_names": has_column_files("jnlpba"),
    "parts_of_speech": has_column_files("brown-pos"),
    "spacy": find_spec("spacy") is not None,
}
SOURCE_ONLY = [name for name, can_run in CAN_RUN.items() if not can_run]
# In the order of the gallery.
SECTIONS = ("first_steps", "corpora", "tuning", "labels", "seeing", "reranking", "scale")
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "subsection_order": [f"../examples/{name}" for name in SECTIONS],
    "gallery_dirs": "auto_examples",
    "filename_pattern": rf"/plot_(?!({'|'.join(SOURCE_ONLY)})\.)",
    "within_subsection_order": "FileNameSortKey",
    "capture_repr": ("_repr_html_",),
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
    "doc_module": ("skstruct",),
    "backreferences_dir": "generated/backreferences",
    "inspect_global_variables": False,
    "write_computation_times": False,
    "parallel": 2,
}

html_theme = "pydata_sphinx_theme"
html_title = "skstruct"
html_static_path = ["_static", str(SCRIPTS)]
html_css_files = ["custom.css"]
html_js_files = ["tables.js"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {
        "text": "skstruct",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
    },
    "navbar_align": "left",
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "navbar_persistent": ["search-button-field"],
    "secondary_sidebar_items": ["page-toc", "edit-this-page"],
    "icon_links": [
        {"name": "Repository", "url": URLS["Source"], "icon": "fa-brands fa-github"},
    ],
    "use_edit_page_button": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "navigation_with_keys": False,
    "pygments_light_style": "tango",
}

html_context = {
    # Light or dark as the reader's system is; without it the theme complains at a first visit.
    "default_mode": "auto",
    "github_user": URLS["Source"].split("/")[-2],
    "github_repo": URLS["Source"].split("/")[-1],
    "github_version": "main",
    "doc_path": "docs",
}

# Docstrings that `SequenceUnion` inherits refer to labels and terms of scikit-learn's own pages.
suppress_warnings = ["ref.ref", "ref.term"]


def find_source(app, package, name):
    """Return the module that defines a public name, for the link to its source.

    The ``__module__`` of public classes is their package, so it does not lead to the source. The
    imports of the package do.
    """
    folder = Path(skstruct.__file__).parents[1].joinpath(*package.split("."))
    path = next((p for p in (folder / "__init__.pyi", folder / "__init__.py") if p.exists()), None)
    if path is None:
        return None
    public = name.partition(".")[0]
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and public in {alias.name for alias in node.names}:
            return node.module
    return None


def say_when_measured(app, path, docname, content):
    """Print below a generated table when, where and on what code it was measured."""
    from benchmarks.common.stamps import describe, read_stamps

    stamp = read_stamps(ROOT / "docs" / path.parent).get(path.stem)
    if stamp is not None:
        content[0] += f"\n*{describe(stamp)}*\n"


def setup(app):
    app.connect("viewcode-follow-imported", find_source)
    app.connect("include-read", say_when_measured)
