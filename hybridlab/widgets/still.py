"""The still picture of a widget: what a notebook shows where the widget itself cannot run.

A saved notebook keeps the picture and not the widget. So a reader sees the picture on a site that shows notebooks, in a preview, and after
the notebook was closed and opened again.
"""

from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING, Any

import anywidget

from hybridlab.errors import HybridLabError

if TYPE_CHECKING:  # matplotlib takes time to import, so only a picture that is drawn imports it
    from hybridlab.plot import Picture

LIVE = "application/vnd.jupyter.widget-view+json"
PIXELS = 720  # the width in which a notebook shows a picture
DPI = 130  # fewer dots than in figures, because a lab has many views and is at most 500 kB
HINT = "To use the controls, run this cell in a notebook."

# The elements around one output in JupyterLab, VS Code and Colab. While the widget is there, its picture is hidden.
OUTPUTS = (".jp-OutputArea-child", ".output_container", ".output_subarea")
HIDDEN = [f"{each}:has(.hybridlab-still):has(+ {each} .hybridlab-view)" for each in OUTPUTS]
# JupyterLab writes "model not found" in place of a widget without a kernel. Only the output of this message has the class jupyter-widgets.
HIDDEN += [".jp-OutputArea-child:has(.hybridlab-still) + .jp-OutputArea-child:has(> .jp-OutputArea-output.jupyter-widgets)"]
STYLE = "\n".join(f"{each} {{ display: none; }}" for each in HIDDEN)  # a rule for each, because a browser drops rules that it cannot read


class Pictured(anywidget.AnyWidget):
    """The base class of widgets with a still picture. A subclass returns the picture of its current state in ``still``."""

    def still(self) -> "Picture | str":
        """Return a figure of the current state, or HTML if words show the state better than a figure."""
        raise NotImplementedError(f"{type(self).__name__} has no still picture")

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return the widget and its still picture in one bundle: the widget, the text of ``repr``, and SVG and PNG or HTML."""
        bundle: Any = super()._repr_mimebundle_(**kwargs)
        data, metadata = bundle
        still = self._still()
        if isinstance(still, str):
            return data | {"text/html": still}, metadata
        forms = {"image/svg+xml": still.svg(), "image/png": _png_of(still)}
        return data | forms, metadata | {"image/png": {"width": PIXELS, "alt": still.alt_text}}

    def _ipython_display_(self) -> None:
        """Show the still picture as one output and the widget as the next output.

        JupyterLab shows only one form of an output. If it shows a widget whose kernel has ended, it shows a message and no picture. With
        two outputs, the picture stays, and the style sheet in its output hides the message.
        """
        from IPython.display import display  # IPython calls this method, so it is there

        bundle: Any = super()._repr_mimebundle_()
        data, metadata = bundle
        still = self._still()
        if not isinstance(still, str):
            still = f'<img src="data:image/png;base64,{_png_of(still)}" width="{PIXELS}" alt="{escape(still.alt_text)}">'
        picture = f'<div class="hybridlab-still">{still}</div>\n<style>\n{STYLE}\n</style>'
        show: Any = display  # IPython has no types for it
        show({"text/html": picture, "text/plain": data["text/plain"]}, raw=True)
        show({LIVE: data[LIVE], "text/plain": ""}, metadata=metadata, raw=True)

    def _still(self) -> "Picture | str":
        """Return the still picture with a line that says so. If the state has no figure, the picture gives the reason in words."""
        from hybridlab.plot.stills import with_line

        try:
            still = self.still()
        except HybridLabError as why:  # for example, a text that is not a schedule yet, or more devices than a figure can show
            still = f"<p>There is no picture of this state: {escape(str(why))}</p>"
        return f"{still}<p>{HINT}</p>" if isinstance(still, str) else with_line(still, HINT)


def _png_of(still: "Picture") -> str:
    return b64encode(still.png(DPI)).decode("ascii")
