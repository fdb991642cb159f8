"""Take pictures of comments and pages as a reader sees them: ``python -m bench.pictures OUT FILE…``.

A FILE is the Markdown of a comment (``reproduce --comment``, ``bench.comments --write``) or a page (``.html``). Each
is shown 1000 and 390 pixels wide, light and dark, by a Chromium that is installed. The style of a comment is like
GitHub's, and is no copy: widths, wrapping, folds and tables are what the pictures are for.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import tempfile
from itertools import product
from pathlib import Path

from markdown_it import MarkdownIt

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTHS = (1000, 390)
SCHEMES = {"light": 1, "dark": 0}
"""Chromium's numbers of the preferred colour scheme."""
MAX_HEIGHT = 6000
STYLE = """
:root { color-scheme: light dark; --text: #1f2328; --ground: #fff; --line: #d1d9e0; --code: #eff1f3; --link: #0969da }
@media (prefers-color-scheme: dark) {
  :root { --text: #f0f6fc; --ground: #0d1117; --line: #3d444d; --code: #262c36; --link: #4493f8 }
}
body { margin: 0; padding: 16px; background: var(--ground); color: var(--text); overflow-wrap: break-word;
  font: 14px/1.5 system-ui, "Liberation Sans", sans-serif, "Noto Color Emoji" }
a { color: var(--link) }
code { background: var(--code); border-radius: 6px; padding: .2em .4em; font: 85% "Liberation Mono", monospace }
pre { background: var(--code); border-radius: 6px; padding: 16px; overflow: auto }
pre code { padding: 0; background: none }
table { display: block; overflow: auto; border-spacing: 0; border-collapse: collapse; width: max-content;
  max-width: 100% }
th, td { border: 1px solid var(--line); padding: 6px 13px }
details > * + *, p, table, ul, pre { margin: 0 0 16px }
summary { margin-bottom: 8px }
"""


def render_document(file: Path) -> str:
    """Return the file as an HTML document; a page as it is."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".html":
        return text
    body = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text)
    return f'<!doctype html><meta charset="utf-8"><style>{STYLE}</style><body>{body}</body>'


def take_picture(browser: str, document: str, target: Path, *, width: int, scheme: str) -> None:
    """Write the picture of a document. A frame has the width, because a window of Chromium is never that narrow."""
    with tempfile.TemporaryDirectory() as folder:
        inner, outer = Path(folder) / "inner.html", Path(folder) / "outer.html"
        inner.write_text(document, encoding="utf-8")
        frame = f'<iframe src="inner.html" style="border:0;width:{width}px;height:%dpx"></iframe>'
        measure = (
            "<script>onload=()=>document.title='height '+frames[0].document.documentElement.scrollHeight</script>"
        )
        flags = [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *("--allow-file-access-from-files", f"--user-data-dir={folder}/profile", "--virtual-time-budget=3000"),
            f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
        ]
        outer.write_text(f'<body style="margin:0">{frame % 100}{measure}', encoding="utf-8")
        found = re.search(r"<title>height (\d+)", _run([*flags, "--dump-dom", outer.as_uri()]))
        height = min(MAX_HEIGHT, int(found[1]) if found else 1000)
        outer.write_text(f'<body style="margin:0">{frame % height}', encoding="utf-8")
        size = f"--window-size={width},{height}"
        _run([*flags, size, f"--screenshot={target.resolve()}", outer.as_uri()])


def _run(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    given = parser.parse_args()
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        parser.error(f"none of these is installed: {', '.join(BROWSERS)}")
    given.out.mkdir(parents=True, exist_ok=True)
    for file, width, scheme in product(given.files, WIDTHS, SCHEMES):
        target = given.out / f"{file.stem}{file.suffix.replace('.', '-')}-{width}-{scheme}.png"
        take_picture(browser, render_document(file), target, width=width, scheme=scheme)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
