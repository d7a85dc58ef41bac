#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far each constant of crates/link/src/pipe.rs may be from its value until a test in virtual time fails: a link is no longer filled,
a queue no longer short, or connections are opened in vain. The figures are those of any machine.

usage: python3 bench/pipe_constants.py [NAME…]"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "crates/link/src"
FACTORS = [1.01, 1.02, 1.05, 1.1, 1.25, 1.5, 2, 3, 4, 8, 16]
CONSTANT = re.compile(r"^(pub )?const (\w+): ([^=]+) = (.*);$", re.M)
NUMBER = re.compile(r"\d[\d_]*\.?\d*(?:e\d+)?")
# In place of the number of a constant: it, or what the environment says.
LOOK = """
fn changed(name: &str, number: f64) -> f64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(number)
}
"""


def changeable(text):
    """The same, with constants whose numbers can be changed by the environment; and these numbers."""
    numbers = {}

    def function(match):
        _, name, kind, value = match.groups()
        at = iter(range(9))

        def look(number):
            key, digits = f"PIPE_{name}_{next(at)}", number.group()
            is_whole = "." not in digits and "e" not in digits
            numbers[key] = (float(digits.replace("_", "")), is_whole)
            return f'(changed("{key}", {numbers[key][0]!r}) as {"_" if is_whole else "f64"})'

        return f"fn {name}() -> {kind} {{ {NUMBER.sub(look, value)} }}"

    changed = CONSTANT.sub(function, text)
    for name in {match.group(2) for match in CONSTANT.finditer(text)}:
        changed = re.sub(rf"(?<![\w:(]){name}\b(?!\()|(?<=\(){name}\b(?!\()|(?<=super::){name}\b", f"{name}()", changed)
    return changed, numbers


def build(place):
    text, numbers = changeable((SOURCE / "pipe.rs").read_text())
    (place / "pipe.rs").write_text(text + LOOK)
    tests = (SOURCE / "pipe/tests.rs").read_text()
    for match in CONSTANT.finditer((SOURCE / "pipe.rs").read_text()):
        tests = re.sub(rf"\b{match.group(2)}\b", f"{match.group(2)}()", tests)
    (place / "tests.rs").write_text(tests)
    subprocess.run(["rustc", "--edition=2024", "--test", "-Awarnings", "-Copt-level=1", "-o", place / "run", place / "pipe.rs"], check=True)
    return numbers


def failing(place, key=None, value=0.0):
    environment = os.environ | ({key: repr(value)} if key else {})
    try:
        done = subprocess.run([place / "run"], capture_output=True, text=True, timeout=120, env=environment)
    except subprocess.TimeoutExpired:
        return ["(a test does not end)"]
    return sorted(name.split("::")[-1] for name in re.findall(r"^test (\S+) .*FAILED$", done.stdout, re.M))


def edge(place, key, number, is_whole, up):
    """The last value in one direction with which all tests pass, and what fails with the next."""
    last = number
    for factor in FACTORS:
        value = number * factor if up else number / factor
        value = float(max(round(value), 1)) if is_whole else value
        failed = failing(place, key, value) if value not in (last, number) else []
        if failed:
            return last, failed
        last = value
    return last, []


def main():
    with tempfile.TemporaryDirectory() as place:
        place = Path(place)
        numbers = build(place)
        if failing(place):
            sys.exit("the tests fail as they are")
        print("| constant | value | least | below that fails | most | above that fails |\n| --- | --- | --- | --- | --- | --- |")
        for key, (number, is_whole) in numbers.items():
            if sys.argv[1:] and key[5:].rsplit("_", 1)[0] not in sys.argv[1:]:
                continue
            least, below = edge(place, key, number, is_whole, False)
            most, above = edge(place, key, number, is_whole, True)
            words = [", ".join(test.replace("_", " ") for test in tests[:2]) or "nothing" for tests in (below, above)]
            print(f"| `{key[5:]}` | {number:.4g} | {least:.4g} | {words[0]} | {most:.4g} | {words[1]} |", flush=True)


main()
