"""How the reference is built from the docstrings: sphinx-build -W -b html notebooks/reference OUT."""

import importlib.metadata

project = "kvstats"
version = release = importlib.metadata.version("kvstats")
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax", "numpydoc"]
default_role = "py:obj"
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
templates_path = ["templates"]
html_theme = "alabaster"
html_theme_options = {"page_width": "64em", "sidebar_width": "12em"}
html_sidebars = {"**": ["about.html", "searchfield.html"]}
