#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes spec/procedures.tsv and spec/parameters.tsv from the machine-readable interfaces of MPI 5.0.

usage: python3 spec/import.py APIS.JSON      (from the top of the repository)

APIS.JSON is data/apis.json of the Python package pympistandard 0.2.0. What the columns mean stands in spec/README.md.
"""

import json
import re
import sys

PROCEDURES = ["procedure", "result", "languages", "what", "large", "pointer_overload"]
PARAMETERS = [
    "procedure", "parameter", "kind", "direction", "intent", "length", "root_only", "optional", "constant",
    "asynchronous", "callback", "languages", "large_only", "meaning",
]
# Names of the macros that the document writes in its descriptions.
PLAIN = [
    (r"\\mpi(arg|code|func|const|skipfunc|skiparg)\{([^{}]*)\}", r"\2"),
    (r"\\(const|info|type|ftype|ctype|error|constskip|infokey|infoval|code|texttt|emph|textit)\{([^{}]*)\}", r"\2"),
    (r"\\mbox\{([^{}]*)\}", r"\1"), (r"\\(?:MPI|mpi)/?", "MPI"), (r"\\RMA/?", "RMA"), (r"\\(?:Cpp|CPP)/?", "C++"), (r"\\(?=[_#%&])", ""), (r"~", " "), (r"\$", ""), (r"\\ldots", "..."),
    (r"\\leq?(?![a-z])", "<="), (r"\\geq?(?![a-z])", ">="), (r"\\ ", " "), (r"``|''", '"'), (r"\s+", " "),
]
# What the document's interfaces say wrongly: the buffer of a partitioned receive is written, and both buffers are used after the call.
CORRECTIONS = {
    ("MPI_Precv_init", "buf"): {"direction": "out", "intent": "-", "asynchronous": "yes"},
    ("MPI_Psend_init", "buf"): {"asynchronous": "yes"},
}


def plain(text):
    """A description without the markup of the document."""
    for pattern, replacement in PLAIN:
        text = re.sub(pattern, replacement, text)
    return text.strip() or "-"


def yes(value):
    return "yes" if value in (True, "true") else "-"


def length(value):
    """`-` for a scalar, `*` for an array whose length follows from something else, else what it is; `,` between dimensions."""
    if value is None:
        return "-"
    if isinstance(value, list):
        return ",".join(v or "*" for v in value)
    return value or "*"


def languages(attributes):
    known = [("c", "c_expressible"), ("f90", "f90_expressible"), ("f08", "f08_expressible")]
    return ",".join(name for name, key in known if attributes[key]) or "-"


def seen_in(suppress):
    """Languages whose interface has the parameter."""
    return ",".join(name for name in ("c", "f90", "f08") if f"{name}_parameter" not in suppress.split()) or "-"


def procedure(entry, poly):
    attributes = entry["attributes"]
    what = "procedure"
    if attributes["callback"]:
        what = "callback"
    elif attributes["predefined_function"]:
        what = "predefined:" + attributes["predefined_function"]
    overload = yes(attributes["f90_index_overload"] is not None)
    return [entry["name"], entry["return_kind"], languages(attributes), what, yes(poly), overload]


def parameter(entry, p):
    intent = "-" if "f08_intent" in p["suppress"].split() else p["param_direction"]
    size = "*" if p["array_type"] == "hidden" and p["length"] is None else length(p["length"])
    row = [
        entry["name"], p["name"], p["kind"], p["lis_direction"], intent, size, yes(p["root_only"]), yes(p["optional"]),
        yes(p["constant"]), yes(p["asynchronous"]), p["func_type"] or "-", seen_in(p["suppress"]), yes(p["large_only"]),
        plain(p["desc"]),
    ]
    for column, value in CORRECTIONS.get((entry["name"], p["name"]), {}).items():
        row[PARAMETERS.index(column)] = value
    return row


def write(path, heading, rows):
    with open(path, "w", encoding="utf-8") as file:
        for row in [heading, *rows]:
            assert len(row) == len(heading) and not any("\t" in cell or "\n" in cell for cell in row), row
            file.write("\t".join(row) + "\n")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        entries = [entry for _, entry in sorted(json.load(file).items())]
    poly = [any(p["kind"].startswith("POLY") or p["large_only"] for p in entry["parameters"]) for entry in entries]
    write("spec/procedures.tsv", PROCEDURES, [procedure(e, p) for e, p in zip(entries, poly)])
    write("spec/parameters.tsv", PARAMETERS, [parameter(e, p) for e in entries for p in e["parameters"]])


if __name__ == "__main__":
    main()
