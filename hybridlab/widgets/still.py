"""The still picture of a widget: what a notebook shows where the widget itself cannot run.

A saved notebook keeps the picture and not the widget. So a reader sees the picture on a site that shows notebooks, in a preview, and after
the notebook was closed and opened again.
"""

from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING, Any

import anywidget
from IPython.display import display

from hybridlab.errors import HybridLabError

if TYPE_CHECKING:  # matplotlib takes time to import, so only a picture that is drawn imports it
    from hybridlab.plot import Picture

LIVE = "application/vnd.jupyter.widget-view+json"
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
        png, size = still._repr_png_()
        return data | {"image/svg+xml": still.svg(), "image/png": _base64(png)}, metadata | {"image/png": size}

    def _ipython_display_(self) -> None:
        """Show the still picture as one output and the widget as the next output.

        JupyterLab shows only one form of an output. If it shows a widget whose kernel has ended, it shows a message and no picture. With
        two outputs, the picture stays, and the style sheet in its output hides the message.
        """
        bundle: Any = super()._repr_mimebundle_()
        data, metadata = bundle
        still = self._still()
        if not isinstance(still, str):
            png, size = still._repr_png_()
            still = f'<img src="data:image/png;base64,{_base64(png)}" width="{size["width"]}" alt="{escape(still.alt_text)}">'
        picture = f'<div class="hybridlab-still">{still}</div>\n<style>\n{STYLE}\n</style>'
        show: Any = display  # IPython has no types for it
        show({"text/html": picture, "text/plain": data["text/plain"]}, raw=True)
        show({LIVE: data[LIVE], "text/plain": ""}, metadata=metadata, raw=True)

    def _still(self) -> "Picture | str":
        """Return the still picture with a line that says so. If the state has no figure, the picture gives the reason in words."""
        from hybridlab.widgets.still_pictures import with_line

        try:
            still = self.still()
        except HybridLabError as why:  # for example, a text that is not a schedule yet, or more devices than a figure can show
            still = f"<p>There is no picture of this state: {escape(str(why))}</p>"
        return f"{still}<p>{HINT}</p>" if isinstance(still, str) else with_line(still, HINT)


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")
