#!/usr/bin/env python3
"""Makes the book: the pages of the repository as a site, with outputs and reports of shipped experiments.

    scripts/book.py PAGETIDE MDBOOK TARGET [--quick]

The pages that docs/SUMMARY.md lists, and the files that they link to, are copied to TARGET/book-source under their
paths in the repository. So a link works on a forge and in the book. Four more pages exist only in the book: the
gallery, the experiments (scripts/book/experiments.md with the output of each command), the metrics, and the functions
of Linux. The book is TARGET/book/index.html; it needs no server and no network.

Exits with 1 if a link of the book does not resolve.
"""

import argparse
import collections
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")
# An experiment is in the gallery if its report takes less than a minute.
GALLERY = [
    "tunable-watermarks",
    "batch-beside-service",
    "min-free-burst",
    "page-cache-and-limit",
    "huge-pages-or-not",
    "shrink-priority",
    "compiler-trace",
]
# A command in scripts/book/experiments.md, whose output follows in the book.
COMMAND = re.compile(r"^\$ pagetide (.*)\n", re.M)
# Pages that are made here, by the heading of docs/SUMMARY.md that they come under.
GENERATED = {
    "# Results": ["- [Gallery](gallery.md)", "- [Experiments](experiments.md)"],
    "# Reference": ["- [Metrics](metrics.md)", "- [Functions of Linux](linux-functions.md)"],
}


def local_links(page, text):
    """The files of the repository that a page links to, as paths from its root."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for link in LINK.findall(re.sub(r"`[^`\n]*`", "", text)):
        path = os.path.normpath(os.path.join(os.path.dirname(page), link))
        if "://" not in link and (ROOT / path).exists():
            yield path


def gather(source, generated):
    """Writes the generated pages, and copies the other pages and what all of them link to."""
    summary = (ROOT / "docs/SUMMARY.md").read_text()
    pages = set(local_links("docs/SUMMARY.md", summary))
    wanted = set(pages)
    for page in pages:
        wanted |= set(local_links(page, (ROOT / page).read_text()))
    for page, text in generated.items():
        (source / page).parent.mkdir(parents=True, exist_ok=True)
        (source / page).write_text(text)
        wanted |= set(local_links(page, text))
    for path in wanted:
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / path).is_dir():
            shutil.copytree(ROOT / path, source / path, dirs_exist_ok=True)
        else:
            shutil.copy(ROOT / path, source / path)
    shutil.copy(ROOT / "docs/book.toml", source)
    for heading, lines in GENERATED.items():
        if f"{heading}\n\n" not in summary:
            sys.exit(f"docs/SUMMARY.md has no heading `{heading}`")
        summary = summary.replace(f"{heading}\n\n", "\n".join([heading, "", *lines, ""]), 1)
    # mdBook expects the summary at the top; there its paths begin with docs.
    moved = LINK.sub(lambda link: f"]({os.path.normpath(os.path.join('docs', link[1]))})", summary)
    (source / "SUMMARY.md").write_text(moved)


def gallery():
    """The page that lists the reports."""
    titles = [tomllib.loads((ROOT / f"experiments/{name}.toml").read_text())["title"] for name in GALLERY]
    rows = [f"| [{name}](gallery/{name}.html) | {title} |" for name, title in zip(GALLERY, titles)]
    return (
        "# Gallery\n\nReports of shipped experiments, one file each: verdict, table, seeds, timelines, latencies.\n"
        "`pagetide run NAME --html NAME.html` makes the same file. [experiments.md](experiments.md) has the\n"
        "tables of all experiments.\n\n| report | question |\n|---|---|\n" + "\n".join(rows) + "\n"
    )


def reports(source, pagetide):
    """A report for each experiment of the gallery."""
    folder = source / "docs/gallery"
    folder.mkdir(parents=True)
    for name in GALLERY:
        print(f"report of {name}", flush=True)
        command = [pagetide, "run", name, "--html", folder / f"{name}.html"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def experiments(pagetide, quick):
    """The page of the experiments: the text in scripts/book, and what its commands print."""

    def output(command):
        if quick:
            return command[0]
        print(f"pagetide {command[1]}", flush=True)
        ran = subprocess.run([pagetide, *command[1].split()], check=True, stdout=subprocess.PIPE, text=True)
        return command[0] + ran.stdout

    return COMMAND.sub(output, (ROOT / "scripts/book/experiments.md").read_text())


def topics(pagetide):
    """All that `pagetide explain` knows, by kind."""
    ran = subprocess.run([pagetide, "explain", "*", "--format", "json"], check=True, stdout=subprocess.PIPE)
    found = collections.defaultdict(list)
    for topic in json.loads(ran.stdout):
        found[topic["kind"]].append(topic)
    return found


def cell(text):
    """A text within a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def metrics(found):
    """The page of all metrics."""
    rows = []
    for topic in found:
        better = topic.get("better", "").partition(",")
        better = "work" if better[2] else better[0]
        of = ", ".join(topic.get("of", []))
        columns = [topic.get("unit", ""), of, better, topic.get("linux", ""), topic["about"]]
        rows.append(f"| `{topic['name']}` | " + " | ".join(map(cell, columns)) + " |")
    return (
        "# Metrics\n\nMade from the declarations in the source; `pagetide metrics` and `pagetide explain` print the\n"
        "same. [scenario.md](scenario.md#report) says how a key consists of an owner and a name. *Better* is the\n"
        "direction that verdicts and `find` use; less *work* is cheaper, but no aim in itself. `Pagetide` as the\n"
        "source: no kernel reports the metric.\n\n"
        "| name | unit | of | better | source | what it is |\n|---|---|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def linux_functions(found):
    """The page that leads from a function of Linux to the files of the core."""
    files = [", ".join(re.findall(r"crates/\S+\.rs", topic["about"])) for topic in found]
    rows = [f"| `{topic['name']}` | {paths} |" for topic, paths in zip(found, files)]
    return (
        "# Functions of Linux\n\nThe files that implement each function; `pagetide explain FUNCTION` prints\n"
        "the same.\n\n| Linux | files |\n|---|---|\n" + "\n".join(rows) + "\n"
    )


class Page(html.parser.HTMLParser):
    """The links of a page, and its anchors."""

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
        # Reports have only links within themselves; print.html repeats all pages.
        if "gallery" not in path.parts and path.name not in ("print.html", "404.html", "toc.html"):
            pages[path] = Page(path.read_text())
    for path, page in pages.items():
        for link in page.links:
            url = urllib.parse.urlparse(link)
            if url.scheme or url.netloc:
                continue
            target = path
            if url.path:
                target = pathlib.Path(os.path.normpath(path.parent / urllib.parse.unquote(url.path)))
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
    parser.add_argument("--quick", action="store_true", help="run no experiments: no reports and no outputs")
    arguments = parser.parse_args()
    source, book = arguments.target / "book-source", arguments.target.resolve() / "book"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    known = topics(arguments.pagetide)
    generated = {
        "docs/gallery.md": gallery(),
        "docs/experiments.md": experiments(arguments.pagetide, arguments.quick),
        "docs/metrics.md": metrics(known["metric"]),
        "docs/linux-functions.md": linux_functions(known["linux-function"]),
    }
    gather(source, generated)
    if not arguments.quick:
        reports(source, arguments.pagetide)
    subprocess.run([arguments.mdbook, "build", source, "--dest-dir", book], check=True)
    wrong = sorted(set(broken(book, not arguments.quick)))
    print("\n".join(wrong + [f"{book}/index.html, {len(wrong)} links lead nowhere"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
