"""Find accessibility faults in a page with axe-core, which comes from npm: a test that asks for them has the mark ``needs("axe")``.

Such faults matter to readers who use a screen reader, who use no mouse, or who see badly.
"""

from functools import cache

from browser import SITE
from playwright.sync_api import Page

AXE = SITE.parents[1] / "tests/node_modules/axe-core/axe.min.js"
OF_COLOURS = ("color-contrast", "link-in-text-block")  # these rules depend on whether a page is light or dark
# Two texts look the same if they have the same element, class and letters on the same backgrounds. Of all texts that look the same, only
# two are checked for contrast. Of all links that look the same, only two are compared with the text around them. A page has thousands of
# code words and operation numbers that look the same, and each check would take a millisecond.
VIOLATIONS = """async ([within, rules]) => {
  const grounds = new Map();
  const groundsOf = (element) => {
    if (!element) return "";
    if (!grounds.has(element)) {
      const { backgroundColor, backgroundImage, opacity, filter, mixBlendMode, position } = getComputedStyle(element);
      const own = [backgroundColor, backgroundImage, opacity, filter, mixBlendMode, position === "static" ? "" : position].join();
      grounds.set(element, groundsOf(element.parentElement) + (own === "rgba(0, 0, 0, 0),none,1,none,normal," ? "" : `|${own}`));
    }
    return grounds.get(element);
  };
  const asked = new Map();
  const isText = (element) => [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  for (const element of document.querySelectorAll(within.flatMap((each) => [each, `${each} *`]).join())) {
    if (!element.matches("input, select, textarea") && !isText(element)) continue;
    const { color, fill, fontSize, fontWeight, textShadow } = getComputedStyle(element);
    const names = [element.localName, element.getAttribute("class"), element.parentElement?.getAttribute("class")];
    const look = [...names, color, fill, fontSize, fontWeight, textShadow, groundsOf(element)].join(";");
    asked.set(look, [...(asked.get(look) ?? []), element]);
  }
  const chosen = [...asked.values()].flatMap((alike) => alike.slice(0, 2));
  for (const element of chosen) element.setAttribute("data-contrast", "");
  const links = ":is(a[href], [role=link])[data-contrast]";
  axe.configure({ rules: [{ id: "color-contrast", selector: "[data-contrast]" }, { id: "link-in-text-block", selector: links }] });
  const options = { iframes: false, preload: false, resultTypes: ["violations"], ...(rules.length ? { runOnly: rules } : {}) };
  const { violations } = await axe.run({ include: within.map((selector) => [selector]) }, options);
  for (const element of chosen) element.removeAttribute("data-contrast");
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  return serious.map(({ id, help, nodes }) => [`${id}: ${help}`, ...nodes.map(({ target }) => target.join(" "))].join("\\n    "));
}"""

# Of the parts of a page that look the same at places that look the same, two stay and the others are removed: rows of tables, items of
# lists, paragraphs, entries of the library, bars of pictures. They are most of a page. Two parts look the same if their elements, classes,
# roles and colours are the same, and if the same of them have words and names. Parts that another element names stay.
THINNED = """() => {
  document.body.replaceWith(document.body.cloneNode(true)); // no script hears of what happens to it
  const parts = new Set("LI TR P PRE DIV SECTION DL TABLE FIGURE UL OL BLOCKQUOTE DETAILS A BUTTON CODE EM SPAN STRONG math".split(" "));
  const whole = "a, button, summary, label, legend, caption, option, math, svg, h1, h2, h3, h4, h5, h6"; // their words are their names
  const naming = ["for", "aria-labelledby", "aria-describedby", "aria-controls", "aria-owns"];
  const telling = ["class", "role", "type", "aria-hidden", "style", "fill", "stroke"];
  const named = [...document.querySelectorAll(naming.map((name) => `[${name}]`).join())]
    .flatMap((each) => naming.flatMap((name) => (each.getAttribute(name) ?? "").split(" "))).filter(Boolean)
    .map((id) => document.getElementById(id)).filter(Boolean);
  const seen = new Map();
  for (const word of document.querySelectorAll(".highlight span[class]:not([id]), .sig span[class]:not([id])")) {
    const look = [word.className, word.parentElement.className].join(";");
    seen.set(look, (seen.get(look) ?? 0) + 1);
    if (seen.get(look) > 2 && !word.childElementCount && word.attributes.length === 1) word.replaceWith(word.textContent);
  }
  document.body.normalize();
  const looks = new Map();
  const lookOf = (element) => {
    if (looks.has(element)) return looks.get(element);
    const names = element.getAttributeNames().map((name) => (telling.includes(name) ? `${name}=${element.getAttribute(name)}` : name));
    const inside = new Set();
    for (const child of element.childNodes) {
      if (child.nodeType === Node.ELEMENT_NODE) inside.add(lookOf(child));
      else if (child.nodeType === Node.TEXT_NODE && child.data.trim()) inside.add("text");
    }
    looks.set(element, `${element.localName}[${names.sort()}](${[...inside].join("")})`);
    return looks.get(element);
  };
  const thin = (element, path) => {
    for (const child of [...element.children]) {
      const look = `${path}|${lookOf(child)}`;
      seen.set(look, (seen.get(look) ?? 0) + 1);
      const stays = !parts.has(child.tagName) || child.hasAttribute("role") || named.some((each) => child.contains(each));
      if (seen.get(look) > 2 && !stays) child.remove();
      else if (!child.matches(whole)) thin(child, `${path}>${child.localName}.${child.getAttribute("class")}`);
    }
  };
  thin(document.body, "");
  const places = / (x|y|x1|x2|y1|y2|cx|cy|width|height|transform|points|d|aria-label|data-[a-z]+)="[^"]+"/g;
  for (const bar of document.querySelectorAll(".hybridlab-view svg :is(g, rect, line, path, polygon, text)")) {
    if (!bar.isConnected) continue;
    const look = [bar.parentElement.getAttribute("class"), bar.outerHTML.replaceAll(places, " $1").replaceAll(/>[^<]+</g, ">.<")].join(";");
    seen.set(look, (seen.get(look) ?? 0) + 1);
    if (seen.get(look) > 2) bar.remove();
  }
}"""


OTHERS = """(within) => {
  const kept = [...document.querySelectorAll(within.join())];
  const leave = (element) => {
    for (const child of [...element.children]) {
      if (kept.some((each) => each.contains(child))) continue;
      if (kept.some((each) => child.contains(each))) leave(child);
      else if (!child.matches("script, style")) child.remove();
    }
  };
  leave(document.body);
}"""


def without_others(page: Page, *within: str) -> None:
    """Remove from the page what is not in an element that one of the selectors matches; the elements around these stay."""
    page.evaluate(OTHERS, within)


@cache
def axe() -> str:
    return AXE.read_text(encoding="utf-8")


def thinned(page: Page) -> None:
    """Keep only two of all parts that look alike. Afterwards only :func:`violations` or questions that load the page again may follow."""
    page.evaluate(THINNED)


def violations(page: Page, *within: str, rules: tuple[str, ...] = ()) -> list[str]:
    """Return the serious and critical faults of the page, or of the elements that the selectors match.

    Each fault names the elements that have it. ``rules`` are the axe rules to check; without them, all rules are checked.
    """
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(axe())
    return list(page.evaluate(VIOLATIONS, [within or ["html"], rules]))
