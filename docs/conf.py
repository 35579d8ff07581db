"""Settings of the site; `make docs` builds it, and every warning is an error."""

import sys
from pathlib import Path

import noisewise

sys.path.insert(0, str(Path(__file__).parent))

project = "noisewise"
author = "the noisewise authors"
copyright = "the noisewise authors, Apache-2.0"
version = release = noisewise.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "catalogue",
    "mathml",
    "standings",
]
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3

# `name` in a docstring links to what it names, where that has a page
default_role = "py:obj"
highlight_language = "none"
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_param = False
napoleon_use_rtype = False
toc_object_entries_show_parents = "hide"

html_math_renderer = "mathml"
html_theme = "furo"
html_title = "noisewise"
html_logo = "static/logo.svg"
html_favicon = "static/logo.svg"
html_static_path = ["static"]
html_css_files = ["style.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072B2", "color-brand-content": "#0072B2"},
    "dark_css_variables": {"color-brand-primary": "#56B4E9", "color-brand-content": "#56B4E9"},
}
