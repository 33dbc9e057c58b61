"""Test that on a screen 800 px wide and 720 px high, one screen shows the setting, the picture and the readout of each view of the labs."""

from typing import Any

SCREEN = 720  # px
# the lowest edge of the setting, the picture and the readout of each view, from its upper edge;
# the cluster explorer also says its setting in words below its tables
LOWEST = """() => [...document.querySelectorAll(".hybridlab-view:has(.picture, .plots)")]
  .map((view) => {
    const parts = [...view.querySelectorAll(
      ".fields, .tools, .player, .picture, .plots, .map, .told:not(.plan)")]
      .filter((part) => part.checkVisibility());
    const bottom = Math.max(...parts.map((part) => part.getBoundingClientRect().bottom));
    return [view.className, bottom - view.getBoundingClientRect().top];
  })"""


def test_one_screen_shows_the_setting_the_picture_and_the_readout(new_page: Any, server: str, lab: str) -> None:
    page = new_page(server + lab, width=800)
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = !fold.closest('.hybridlab-view'); })")
    page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    assert [(name, height) for name, height in page.evaluate(LOWEST) if height > SCREEN] == []
