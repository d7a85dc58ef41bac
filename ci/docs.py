# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of the book's pages and looks at what they print.

A block ```console is run: each line that begins with "$ " is a command (lines that end with a backslash go on), the lines below it
are what it prints, where "..." stands for anything. Every such line must be there, in this order; a command must end with 0.
A comment in the line above a block changes that:

    <!-- file: NAME -->         the block is written into NAME
    <!-- status: N -->          the commands end with N
    <!-- nightly -->            run only when ISTHMUS_TEST_DOCS=all
    <!-- not run: REASON -->    never run; the reason is printed

usage: docs.py run PAGE...      inside the testbed of ci/docs.toml
       docs.py check PAGE...    headings of docs/troubleshooting.md stand in the sources; links lead somewhere; paragraphs are short
"""
import os, re, shutil, subprocess, sys, tempfile, time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# One command may take this long, seconds.
LIMIT = 120


def blocks(text):
    """Language, comment in the line above, first line number and lines of every block."""
    lines, at, above = text.splitlines(), 0, ""
    while at < len(lines):
        opened = re.match(r"( *)```(\w*)", lines[at])
        if opened:
            begin = at + 1
            at = begin
            while at < len(lines) and lines[at].strip() != "```":
                at += 1
            body = [line[len(opened[1]):] for line in lines[begin:at]]
            yield opened[2], above, begin + 1, body
            above = ""
        elif lines[at].strip():
            note = re.match(r" *<!-- *(.*?) *-->$", lines[at])
            above = note[1] if note else ""
        at += 1


def commands(body):
    """Each command with the lines that it prints."""
    found, more = [], False
    for line in body:
        if more:
            found[-1][0] += "\n" + line
        elif line.startswith("$ "):
            found.append([line[2:], []])
        elif found and line.strip():
            found[-1][1].append(line.rstrip())
            continue
        else:
            continue
        more = line.endswith("\\")
    return found


def lacking(expected, printed):
    """The first expected line that was not printed in its turn."""
    at = 0
    for line in expected:
        if line.strip() == "...":
            continue
        pattern = re.compile(r"\s*" + r".*".join(r"\s+".join(map(re.escape, part.split(" "))) for part in re.sub(" +", " ", line.strip()).split("...")) + r"\s*$")
        while at < len(printed) and not pattern.match(printed[at]):
            at += 1
        if at == len(printed):
            return line
        at += 1
    return None


class Page:
    """A shell that keeps its state from one command to the next."""

    def __init__(self, path):
        self.path, self.failed, self.ran = path, 0, 0
        self.directory = tempfile.mkdtemp(prefix="page-", dir=os.environ["ISTHMUS_TEST_DOCS_WORK"])
        self.shell = subprocess.Popen(["bash"], stdin=subprocess.PIPE, cwd=self.directory, start_new_session=True,
                                      env={**os.environ, "ISTHMUS_TEST_SOURCE": TOP, "SOURCE": TOP, "LC_ALL": "C.UTF-8"})

    def run(self, number, command, expected, status):
        self.ran += 1
        out, ended = (os.path.join(self.directory, f".{what}") for what in ("out", "ended"))
        for file in (out, ended):
            if os.path.exists(file):
                os.remove(file)
        text = f"{{ {command}\n}} >{out} 2>&1 </dev/null; echo $? >{ended}.new; mv {ended}.new {ended}\n"
        self.shell.stdin.write(text.encode())
        self.shell.stdin.flush()
        began = time.monotonic()
        while not os.path.exists(ended):
            if time.monotonic() - began > LIMIT or self.shell.poll() is not None:
                self.fail(number, command, "it did not end", out)
                raise SystemExit(1)
            time.sleep(0.02)
        got = int(open(ended).read())
        printed = open(out, errors="replace").read().splitlines()
        missing = lacking(expected, printed)
        if got != status:
            self.fail(number, command, f"exit status {got}, not {status}", out)
        elif missing is not None:
            self.fail(number, command, f"it does not print: {missing}", out)

    def fail(self, number, command, why, out):
        self.failed += 1
        print(f"{self.path}:{number}: $ {command}\n    {why}")
        if os.path.exists(out):
            for line in open(out, errors="replace").read().splitlines()[-25:]:
                print(f"    | {line}")

    def end(self):
        self.shell.stdin.close()
        self.shell.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


def run(pages):
    everything = os.environ.get("ISTHMUS_TEST_DOCS") == "all"
    passed = failed = 0
    ssh_configuration()
    for path in pages:
        shutil.rmtree(os.path.expanduser("~/.config/isthmus"), ignore_errors=True)
        page = Page(os.path.relpath(path, TOP))
        began = time.monotonic()
        for language, note, number, body in blocks(open(path).read()):
            if note.startswith("file: "):
                with open(os.path.join(page.directory, note[6:]), "w") as file:
                    file.write("\n".join(body) + "\n")
            elif note.startswith("not run: "):
                print(f"skipped: {page.path}:{number}: {note[9:]}")
            elif language == "console" and (everything or note != "nightly"):
                status = int(note[8:]) if note.startswith("status: ") else 0
                for command, expected in commands(body):
                    page.run(number, command, expected, status)
        page.end()
        passed += page.ran - page.failed
        failed += page.failed
        if page.ran:
            print(f"{page.path}: {page.ran} commands, {time.monotonic() - began:.1f} s")
    print(f"{passed} passed, {failed} failed")
    return failed == 0


def ssh_configuration():
    """The book's sites are called `lab` and `far`; the testbed's hosts lab1 and far1."""
    path = os.path.expanduser("~/.ssh/config")
    old = open(path).read()
    new = "".join(f"Host {site}\n    HostName {site}1\n    HostKeyAlias {site}1\n" for site in ("lab", "far"))
    with open(path, "w") as file:
        file.write(new + old)
    # A launcher at a site reaches the others by the same names.
    for host in ("lab1", "far1"):
        adding = "old=$(cat .ssh/config) && { cat; printf '%s\\n' \"$old\"; } >.ssh/config.new && mv .ssh/config.new .ssh/config"
        subprocess.run(["ssh", host, adding], input=new.encode(), check=True)


def check(pages):
    problems = []
    sources = ""
    # Messages of the Fortran library: one literal may be several lines of C.
    for name in ("common.c", "section.c"):
        sources += re.sub(r'"\n\s*"', "", open(os.path.join(TOP, "bindings/fortran/src", name)).read())
    for directory, _, names in os.walk(os.path.join(TOP, "crates")):
        for name in names:
            if name.endswith(".rs") and "/tests" not in directory:
                sources += re.sub(r"\\\n\s*", "", open(os.path.join(directory, name)).read())
    anchors = {path: {slug(h) for h in re.findall(r"^#+ (.*)$", open(path).read(), re.M)} for path in pages}
    for path in pages:
        text, shown = open(path).read(), os.path.relpath(path, TOP)
        for target in re.findall(r"\]\(([^)]+)\)", re.sub(r"```.*?```", "", text, flags=re.S)):
            file, _, anchor = target.partition("#")
            if re.match(r"[a-z]+:", file):
                continue
            whole = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
            if not os.path.exists(whole):
                problems.append(f"{shown}: link to {target}: there is no such file")
            elif anchor and anchor not in anchors.get(whole, set()):
                problems.append(f"{shown}: link to {target}: there is no such heading")
        if "Generated by" in text.split("\n", 1)[0]:
            continue
        for paragraph in re.split(r"\n\s*\n", re.sub(r"```.*?```", "", text, flags=re.S)):
            words = len(paragraph.split())
            if words > 80 and not re.match(r"\s*([-|*#]|\d+\.)", paragraph):
                problems.append(f"{shown}: a paragraph of {words} words: {paragraph.strip()[:60]}")
        if os.path.basename(path) == "troubleshooting.md":
            for heading in re.findall(r"^### `(.*)`$", text, re.M):
                for piece in heading.split("..."):
                    if piece.strip() and piece.strip() not in sources:
                        problems.append(f"{shown}: no message says: {piece.strip()}")
    print("\n".join(problems + [f"{len(pages)} pages, {len(problems)} problems"]))
    return not problems


def slug(heading):
    """As MkDocs makes it."""
    plain = re.sub(r"[^\w\s-]", "", heading.lower()).strip()
    return re.sub(r"[-\s]+", "-", plain)


if __name__ == "__main__":
    verb, pages = sys.argv[1], [os.path.abspath(p) for p in sys.argv[2:]]
    sys.exit(0 if {"run": run, "check": check}[verb](pages) else 1)
