"""Pages whose widgets draw by themselves: no kernel, no widget manager, nothing fetched from outside.

`live_widgets.js` draws them; it goes onto the pages that have any through `nb_ipywidgets_js`. Here the scripts of Thebe
are taken off all pages: this book has no cells to run on a server, and they would ask one for their code.
"""

from sphinx.application import Sphinx
from sphinx.config import Config


def without_thebe(app: Sphinx, config: Config) -> None:
    """Disconnect what sphinx_thebe does to pages, its styles included; jupyter-book loads it whatever the configuration says."""
    app.registry.css_files = [css for css in app.registry.css_files if "thebe" not in css[0]]
    for event, listeners in app.events.listeners.items():
        app.events.listeners[event] = [each for each in listeners if not each.handler.__module__.startswith("sphinx_thebe")]


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", without_thebe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
