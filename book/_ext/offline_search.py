"""The texts that search quotes below a result, as a script: from a page opened as a file, a browser fetches no other page."""

import json
import re
from collections.abc import Mapping

ARTICLE = re.compile(r'<article class="bd-article">(.*?)</article>', re.DOTALL)
UNSEEN = re.compile(r'<(script|style|noscript|svg|math|nav)\b.*?</\1>|<a class="headerlink".*?</a>', re.DOTALL)
TAG = re.compile(r"<(?!/?(?:section|dt)\b)[^>]*>")


def text_of(page: str) -> str:
    """Return a page's text in the form that Sphinx's search reads: the sections and terms that results point to, no other tag."""
    article = ARTICLE.search(page)
    return f'<div role="main">{TAG.sub("", UNSEEN.sub(" ", article[1]))}</div>' if article else ""


def texts_script(pages: Mapping[str, str]) -> str:
    """Return the script that holds the text of each page that has one, by the page's address from the top of the site."""
    texts = {name: text for name, page in pages.items() if (text := text_of(page))}
    return f"window.searchTexts = {json.dumps(texts, ensure_ascii=False)};\n"
