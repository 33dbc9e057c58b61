"""Serve the built site on this machine until Ctrl+C: `python book/serve.py 8000`."""

import signal
import sys
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SITE = Path(__file__).resolve().parents[1] / "_build/html"


class Fresh(SimpleHTTPRequestHandler):
    """Serves files without log lines; a browser checks each time whether a file has changed, so it shows every new build."""

    def end_headers(self) -> None:
        """Make the browser check before it uses a cached copy."""
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Show the site's page 404.html at an address without a page, as public servers do."""
        page = SITE / "404.html"
        if code != HTTPStatus.NOT_FOUND or not page.is_file():
            super().send_error(code, message, explain)
            return
        content = page.read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Print no log lines."""


def port(text: str) -> int:
    """Return ``text`` as a port number; if it is none, end the program with an error message."""
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        sys.exit(f"A port is a number from 1 to 65535, not {text!r}: try make serve PORT=8000")
    return int(text)


def stop(*_: Any) -> None:
    """End the program; the empty line ends the line on which a terminal shows ^C."""
    print()
    sys.exit()


def main(number: int) -> None:
    """Serve the site at ``number``."""
    if not (SITE / "index.html").is_file():
        sys.exit("There is no site yet: run make book first")
    try:
        server = ThreadingHTTPServer(("127.0.0.1", number), partial(Fresh, directory=str(SITE)))
    except OSError as error:
        sys.exit(f"Port {number} is not available ({error.strerror}): try another one, such as make serve PORT={number % 65535 + 1}")
    signal.signal(signal.SIGINT, stop)
    print(f"The site is at http://localhost:{number} until you press Ctrl+C", flush=True)
    with server:
        server.serve_forever()


if __name__ == "__main__":
    main(port(sys.argv[1] if len(sys.argv) > 1 else "8000"))
