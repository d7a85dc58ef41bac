# SPDX-License-Identifier: Apache-2.0
# Whether what `--json` printed is what spec/json.tsv says: every field is described, has its type, and none is missing. A file may have one
# object on each line. usage: python3 schema.py FILE...
import json, pathlib, sys

table = {}
for line in (pathlib.Path(__file__).parents[2] / "spec/json.tsv").read_text().splitlines()[1:]:
    command, field, kind, _ = line.split("\t")
    table.setdefault(command, []).append((field, kind))

def fields(command):
    every = {}
    for field, kind in table[command]:
        every.update(fields(field[1:]) if field.startswith("=") else {field: kind})
    return every

def fits(value, kind):
    if value is None:
        return kind.endswith("?")
    kind = kind.rstrip("?")
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, {"text": str, "flag": bool}[kind])

def walk(value, path, known):
    if known.get(path) == "any":
        return
    if isinstance(value, dict) and f"{path}.*" not in known:
        for name, inner in value.items():
            walk(inner, f"{path}.{name}" if path else name, known)
        for name in {k[len(path) + bool(path):].split(".")[0].split("[")[0] for k in known if k.startswith(path + "." if path else "")}:
            if name not in value:
                wrong(f"{path}: no {name}")
    elif isinstance(value, dict):
        for name, inner in value.items():
            if not fits(inner, known[f"{path}.*"]):
                wrong(f"{path}.{name}: {inner!r} is no {known[f'{path}.*']}")
    elif isinstance(value, list):
        for inner in value:
            walk(inner, path + "[]", known)
        if not any(k.startswith(path + "[]") for k in known):
            wrong(f"{path}: a list that is not described")
    elif path not in known:
        # What is an object otherwise may be null.
        if value is not None or not any(k.startswith(path + ".") for k in known):
            wrong(f"{path}: not described ({value!r})")
    elif not fits(value, known[path]):
        wrong(f"{path}: {value!r} is no {known[path]}")

problems = []
wrong = problems.append
for file in sys.argv[1:]:
    text = pathlib.Path(file).read_text()
    try:
        documents = [json.loads(text)]
    except ValueError:
        documents = [json.loads(line) for line in text.splitlines() if line.strip()]
    for document in documents:
        before = len(problems)
        command = document.get("command")
        if command not in table:
            wrong(f"the command {command!r} is not described")
        else:
            known = fields(command)
            for field, kind in table["*"]:
                if not field.startswith("sites") or any(k.startswith("sites[]") for k in known):
                    known.setdefault(field, kind)
            walk(document, "", known)
        problems[before:] = [f"{file}: {problem}" for problem in problems[before:]]
for problem in problems[:20]:
    print(problem)
sys.exit(1 if problems else 0)
