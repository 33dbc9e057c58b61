"""Widgets on pages draw without a kernel, without a widget manager, and without anything from other hosts.

`live_widgets.js` draws them; the setting `nb_ipywidgets_js` puts it on the pages that have widgets. This extension adds to each
widget what browsers without JavaScript show, and keeps the script of several widgets of one kind on a page only once. It also removes
the scripts of Thebe from all pages: this book has no cells to run on a server, and those scripts would load their code from one.
"""

import json
import shutil
from html import escape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.transforms.post_transforms import SphinxPostTransform

VIEW = "application/vnd.jupyter.widget-view+json"
STILL = ("image/svg+xml", "text/html")  # a widget has one of them
STATE = "application/vnd.jupyter.widget-state+json"
AFTER_STATES = 600  # myst_nb adds the states to a page at priority 500
LONG_TEXTS = ("_esm", "_css")  # the script and the style sheet of a widget
# A page in a frame of another page shows one view. It is hidden until live_widgets.js has taken everything else away.
HIDE = 'if (location.hash.startsWith("#embed")) document.documentElement.style.visibility = "hidden";'
TITLE = "{http://www.w3.org/2000/svg}title"
NO_SCRIPTS = "JavaScript, which is switched off in this browser."
WIDGET = f'<p class="live-widget-note">To use this widget, a page needs {NO_SCRIPTS}</p>'
BET = f'<p class="live-widget-note">Write your bet down before you read on: to keep it, this page needs {NO_SCRIPTS}</p>'


class SayWithoutScripts(SphinxPostTransform):
    """Put below each widget what browsers show that run no scripts: its still picture, or its still words."""

    default_priority = 3  # before myst_nb keeps only one form of an output and drops the others

    def run(self, **kwargs: Any) -> None:
        for bundle in list(self.document.findall(nodes.container)):
            forms = {form["mime_type"]: form for form in bundle.children} if bundle.get("nb_element") == "mime_bundle" else {}
            if VIEW in forms:
                still = [self.still(form) for name, form in forms.items() if name in STILL]
                bet = forms["text/plain"].astext().startswith("<Bet ") if "text/plain" in forms else False
                forms[VIEW] += nodes.raw("", f"<noscript>{''.join(still)}{BET if bet else WIDGET}</noscript>", format="html")

    def still(self, form: nodes.Element) -> str:
        """Return the HTML of a still picture or of still words. A picture is a file, so only browsers without scripts load it."""
        images = [Path(self.app.srcdir, image["uri"].lstrip("/")) for image in form.findall(nodes.image)]
        pictures = Path(self.app.outdir, "_images")
        for path in images:
            pictures.mkdir(exist_ok=True)
            shutil.copyfile(path, pictures / path.name)
        up = "../" * self.env.docname.count("/")
        titles = [ElementTree.parse(path).getroot().findtext(TITLE, "") for path in images]  # noqa: S314 - our own figures
        drawn = [f'<img src="{up}_images/{path.name}" alt="{escape(title)}">' for path, title in zip(images, titles, strict=True)]
        return "".join([*drawn, *(each.astext() for each in form.findall(nodes.raw))])


def each_text_once(states: dict[str, Any]) -> None:
    """In the states of a page's widgets, replace a script or style sheet that an earlier widget has by ``{"as": its id}``."""
    first: dict[tuple[str, str], str] = {}
    for id_, entry in states.items():
        for name in LONG_TEXTS:
            text = entry["state"].get(name)
            if text and first.setdefault((name, text), id_) != id_:
                entry["state"][name] = {"as": first[name, text]}


def lighten_states(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    for place, script in enumerate(context["script_files"]):
        if script.attributes.get("type") == STATE:
            states = json.loads(script.attributes["body"])
            each_text_once(states["state"])
            body = json.dumps(states, separators=(",", ":")).replace("</", r"<\/")
            context["script_files"][place] = type(script)(script.filename, priority=script.priority, **{**script.attributes, "body": body})
            context["script_files"].insert(0, type(script)(None, body=HIDE))
            return  # a page has one script with states


def without_thebe(app: Sphinx, config: Config) -> None:
    """Disconnect sphinx_thebe and its styles; jupyter-book loads it whatever the configuration says."""
    app.registry.css_files = [css for css in app.registry.css_files if "thebe" not in css[0]]
    for event, listeners in app.events.listeners.items():
        app.events.listeners[event] = [each for each in listeners if not each.handler.__module__.startswith("sphinx_thebe")]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_post_transform(SayWithoutScripts)
    app.connect("config-inited", without_thebe)
    app.connect("html-page-context", lighten_states, priority=AFTER_STATES)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
