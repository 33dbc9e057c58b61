"""Widgets on pages draw without a kernel, without a widget manager, and without anything from other hosts.

`live_widgets.js` draws them; the setting `nb_ipywidgets_js` puts it on the pages that have widgets. This extension adds to each
widget what browsers without JavaScript show, and keeps the script of several widgets of one kind on a page only once. It also removes
the scripts of Thebe from all pages: this book has no cells to run on a server, and those scripts would load their code from one.
"""

import json
import re
from html import escape
from typing import Any

from docutils import nodes
from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.transforms.post_transforms import SphinxPostTransform

VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
AFTER_STATES = 600  # myst_nb adds the states to a page at priority 500
LONG_TEXTS = ("_esm", "_css")  # the script and the style sheet of a widget
MODEL = re.compile(r'"model_id":\s*"(\w+)"')
NO_SCRIPTS = "JavaScript, which is switched off in this browser."
WIDGET = f'<p class="live-widget-note">This widget needs {NO_SCRIPTS} What it shows, in words: <code>{{}}</code></p>'
BET = f'<p>{{}}</p>{{}}<p class="live-widget-note">Write your bet down before you read on: to keep it, this page needs {NO_SCRIPTS}</p>'
LOOK_BACK = "<p>{}</p><details><summary>Show the answer</summary><p>{}</p></details>"


class SayWithoutScripts(SphinxPostTransform):
    """Put below each widget what browsers show that run no scripts."""

    default_priority = 3  # before myst_nb keeps only one form of an output and drops its text

    def run(self, **kwargs: Any) -> None:
        _, script = NbMetadataCollector.get_js_files(self.env, self.env.docname).get("ipywidgets_state", (None, {"body": '{"state": {}}'}))
        states = {id_: entry["state"] for id_, entry in json.loads(script["body"])["state"].items()}
        for bundle in list(self.document.findall(nodes.container)):
            forms = {form["mime_type"]: form for form in bundle.children} if bundle.get("nb_element") == "mime_bundle" else {}
            if VIEW in forms:
                text = forms["text/plain"].astext() if "text/plain" in forms else "nothing"
                model = MODEL.search(forms[VIEW].astext())
                words = in_words(states.get(model[1], {}) if model else {}, text)
                forms[VIEW] += nodes.raw("", f"<noscript>{words}</noscript>", format="html")


def in_words(state: dict[str, Any], text: str) -> str:
    """Return a widget as HTML without scripts: the question and the choices of a bet, the answer of a look back, else the text."""
    if "question" not in state:
        return WIDGET.format(escape(text))
    question, unit = escape(state["question"]), escape(state["unit"])
    if "truth" in state:
        answer = f"{escape(str(state['truth']))} {unit}".strip()
        return LOOK_BACK.format(question, f"The answer: {answer}. {escape(state['why'])}".strip())
    choices = "".join(f"<li>{escape(each)}</li>" for each in state["choices"])
    number = f"The answer is a number ({unit})." if unit else "The answer is a number."
    return BET.format(question, f"<ul>{choices}</ul>" if choices else f"<p>{number}</p>")


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
