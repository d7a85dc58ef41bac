# SPDX-License-Identifier: Apache-2.0
"""Finishes the book after MkDocs has made its pages: makes what is searched a script, and looks for what is missing.

A page that was opened as a file may load scripts and no data; so the pages for the search become `search/pages.js`. Every file and
every heading that a page, a style sheet or a script of the book asks for must be there; one that is not ends with 1.

usage: book.py DIRECTORY
"""
import html.parser, json, os, re, sys, urllib.parse

# What the search of MkDocs brings, and our pages do not use.
UNUSED = ["search/main.js", "search/worker.js", "search/search_index.json"]

# Pages for those who change Isthmus.
DEVELOPERS = ("decisions/", "measured/")


def searchable(directory):
    """Writes search/pages.js out of the index."""
    with open(os.path.join(directory, "search/search_index.json"), encoding="utf-8") as index:
        # Each heading is one entry and each page another, which says the same again; what is for developers is not in the contents.
        pages = [page for page in json.load(index)["docs"] if "#" in page["location"] and not page["location"].startswith(DEVELOPERS)]
    with open(os.path.join(directory, "search/pages.js"), "w", encoding="utf-8") as script:
        script.write("var book_pages = " + json.dumps(pages, ensure_ascii=True) + ";\n")
    for name in UNUSED:
        path = os.path.join(directory, name)
        if os.path.exists(path):
            os.remove(path)


class Page(html.parser.HTMLParser):
    """What a page asks for, and the places in it that others may name."""

    def __init__(self, path):
        super().__init__()
        self.asked, self.places = [], {""}
        with open(path, encoding="utf-8") as text:
            self.feed(text.read())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (name == "name" and tag == "a"):
                self.places.add(value)
            elif name in ("href", "src"):
                self.asked.append(value)


def missing(directory):
    """A line for each thing that is asked for and not there."""
    lines, pages, styles = [], {}, []
    for top, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(top, name)
            if name.endswith(".html"):
                pages[path] = Page(path)
            elif name.endswith(".css"):
                styles.append(path)
    for path, page in pages.items():
        for asked in page.asked:
            where = urllib.parse.urlsplit(asked)
            if where.scheme or where.netloc:
                # A page loads nothing from elsewhere; links that a reader follows may lead there.
                if re.search(r"\.(js|css)$", where.path):
                    lines.append(f"{path}: loads {asked}")
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(where.path))) if where.path else path
            if not os.path.isfile(target):
                lines.append(f"{path}: {asked} is not there")
            elif target in pages and urllib.parse.unquote(where.fragment) not in pages[target].places:
                lines.append(f"{path}: {asked}: no such heading")
    for path in styles:
        with open(path, encoding="utf-8") as text:
            for asked in re.findall(r"url\(['\"]?([^)'\"?#]+)", text.read()):
                if not os.path.isfile(os.path.join(os.path.dirname(path), asked)):
                    lines.append(f"{path}: {asked} is not there")
    if not pages:
        lines.append(f"{directory}: no pages")
    return lines


searchable(sys.argv[1])
problems = missing(sys.argv[1])
print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
sys.exit(1 if problems else 0)
