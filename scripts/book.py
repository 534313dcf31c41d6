#!/usr/bin/env python3
"""Builds the book: the pages of the repository as a site, with reports of shipped experiments.

    scripts/book.py PAGETIDE MDBOOK TARGET [--no-gallery]

Copies the pages in docs/SUMMARY.md, and the files that they link to, to TARGET/book-source with
their paths in the repository. So links are the same on a forge and in the book. docs/gallery.md
lists the experiments with a report. The book is TARGET/book/index.html; it needs no server and no
network.

Exits with 1 if a link of the book does not resolve.
"""

import argparse
import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")
REPORT = re.compile(r"\(gallery/([\w-]+)\.html\)")


def local_links(page):
    """The files of the repository that a page links to, as paths from its root."""
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(), flags=re.M | re.S)
    for link in LINK.findall(re.sub(r"`[^`\n]*`", "", text)):
        path = os.path.normpath(os.path.join(os.path.dirname(page), link))
        if "://" not in link and (ROOT / path).exists():
            yield path


def gather(source):
    """Copies the pages and the files that they link to."""
    pages = list(local_links("docs/SUMMARY.md"))
    for path in {path for page in pages for path in local_links(page)} | set(pages):
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / path).is_dir():
            shutil.copytree(ROOT / path, source / path, dirs_exist_ok=True)
        else:
            shutil.copy(ROOT / path, source / path)
    shutil.copy(ROOT / "docs/book.toml", source)
    # mdBook expects the summary at the top; its paths begin in docs.
    summary = (ROOT / "docs/SUMMARY.md").read_text()
    moved = LINK.sub(lambda link: f"]({os.path.normpath(os.path.join('docs', link[1]))})", summary)
    (source / "SUMMARY.md").write_text(moved)


def reports(source, pagetide):
    """A report for each experiment of the gallery."""
    gallery = source / "docs/gallery"
    gallery.mkdir()
    for name in REPORT.findall((ROOT / "docs/gallery.md").read_text()):
        print(f"report of {name}", flush=True)
        command = [pagetide, "run", name, "--html", gallery / f"{name}.html"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


class Page(html.parser.HTMLParser):
    """Links and anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.ids = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids |= {attributes[key] for key in ("id", "name") if attributes.get(key)}
        self.links += [attributes[key] for key in ("href", "src") if attributes.get(key)]


def broken(book, with_reports):
    """Links of the book's pages that do not resolve."""
    pages = {}
    for path in book.rglob("*.html"):
        # Reports only have links within themselves; print.html repeats all pages.
        if "gallery" not in path.parts and path.name not in ("print.html", "404.html", "toc.html"):
            pages[path] = Page(path.read_text())
    for path, page in pages.items():
        for link in page.links:
            url = urllib.parse.urlparse(link)
            if url.scheme or url.netloc:
                continue
            target = pathlib.Path(os.path.normpath(path.parent / urllib.parse.unquote(url.path))) if url.path else path
            is_report = target.parent.name == "gallery"
            if not target.exists() and (with_reports or not is_report):
                yield f"{path.relative_to(book)}: there is no {link}"
            elif target in pages and url.fragment and urllib.parse.unquote(url.fragment) not in pages[target].ids:
                yield f"{path.relative_to(book)}: {link} has no such anchor"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pagetide", type=pathlib.Path)
    parser.add_argument("mdbook", type=pathlib.Path)
    parser.add_argument("target", type=pathlib.Path)
    parser.add_argument("--no-gallery", action="store_true", help="leave out the reports, which take two minutes")
    arguments = parser.parse_args()
    source, book = arguments.target / "book-source", arguments.target.resolve() / "book"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    gather(source)
    if not arguments.no_gallery:
        reports(source, arguments.pagetide)
    subprocess.run([arguments.mdbook, "build", source, "--dest-dir", book], check=True)
    wrong = sorted(set(broken(book, not arguments.no_gallery)))
    print("\n".join(wrong + [f"{book}/index.html, {len(wrong)} broken links"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
