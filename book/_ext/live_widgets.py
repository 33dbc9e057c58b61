"""Pages whose widgets draw by themselves: no kernel, no widget manager, nothing fetched from outside.

`live_widgets.js` draws them; it goes onto the pages that have any through `nb_ipywidgets_js`. Here each widget gets a line for
browsers without JavaScript, and the scripts of Thebe are taken off all pages: this book has no cells to run on a server, and
they would ask one for their code.
"""

from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.transforms.post_transforms import SphinxPostTransform

VIEW = "application/vnd.jupyter.widget-view+json"
WITHOUT_SCRIPTS = (
    '<noscript><p class="live-widget-note">This widget needs JavaScript, which is switched off in this browser.'
    " What it shows, in words: <code>{}</code></p></noscript>"
)


class SayWithoutScripts(SphinxPostTransform):
    """Put a line below each widget that browsers show when they run no scripts: the widget's own text."""

    default_priority = 3  # before myst_nb keeps one form of an output and drops the others, its text among them

    def run(self, **kwargs: Any) -> None:
        for bundle in list(self.document.findall(nodes.container)):
            forms = {form["mime_type"]: form for form in bundle.children} if bundle.get("nb_element") == "mime_bundle" else {}
            if VIEW in forms:
                text = forms["text/plain"].astext() if "text/plain" in forms else "nothing"
                forms[VIEW] += nodes.raw("", WITHOUT_SCRIPTS.format(escape(text)), format="html")


def without_thebe(app: Sphinx, config: Config) -> None:
    """Disconnect what sphinx_thebe does to pages, its styles included; jupyter-book loads it whatever the configuration says."""
    app.registry.css_files = [css for css in app.registry.css_files if "thebe" not in css[0]]
    for event, listeners in app.events.listeners.items():
        app.events.listeners[event] = [each for each in listeners if not each.handler.__module__.startswith("sphinx_thebe")]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_post_transform(SayWithoutScripts)
    app.connect("config-inited", without_thebe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
