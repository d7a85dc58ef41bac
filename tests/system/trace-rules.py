# SPDX-License-Identifier: Apache-2.0
# Whether a file keeps the rules of the Trace Event Format (JSON) as Perfetto and chrome://tracing read it: what breaks one of them is
# dropped or shown in a wrong place by a viewer. Perfetto's importer (trace_processor) is in no package that CI could install, so these are
# its rules as its source has them (flow_tracker, slice_tracker, json_trace_tokenizer), with those of the older viewer. usage: python3 trace-rules.py FILE
import collections, json, math, sys

def number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)

# As viewers keep times.
def nanoseconds(microseconds):
    return round(microseconds * 1000)

def problems(trace):
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    if isinstance(trace, dict) and trace.get("displayTimeUnit", "ms") not in ("ms", "ns"):
        yield "displayTimeUnit"
    slices, begun, flows, named = collections.defaultdict(list), collections.defaultdict(list), {}, set()
    for at, e in enumerate(events):
        def wrong(what):
            return f"event {at}: {what}: {json.dumps(e)[:200]}"
        phase = e.get("ph")
        if phase not in ("X", "b", "e", "n", "s", "t", "f", "i", "C", "M"):
            yield wrong("unknown phase")
            continue
        if not isinstance(e.get("pid"), int) or not 0 <= e["pid"] < 1 << 32:
            yield wrong("pid")
        if phase not in ("M", "C") and not isinstance(e.get("tid"), int):
            yield wrong("tid")
        if not isinstance(e.get("name"), str) or not e["name"]:
            yield wrong("name")
        if phase == "M":
            known = {"process_name": "name", "thread_name": "name", "process_labels": "labels",
                     "process_sort_index": "sort_index", "thread_sort_index": "sort_index"}
            key = known.get(e.get("name"))
            kind = int if key == "sort_index" else str
            if key is None or not isinstance(e.get("args", {}).get(key), kind):
                yield wrong("metadata")
            if e.get("name") == "process_name":
                named.add(e["pid"])
            continue
        if not number(e.get("ts")):
            yield wrong("ts")
            continue
        if phase == "X":
            if not number(e.get("dur")) or e["dur"] < 0:
                yield wrong("dur")
            else:
                slices[e["pid"], e["tid"]].append((nanoseconds(e["ts"]), -nanoseconds(e["dur"]), at))
        elif phase in ("b", "e", "n", "s", "t", "f"):
            if "cat" not in e:
                yield wrong("cat")
            two = e.get("id2", {})
            name = e.get("id", two.get("global", (e["pid"], two["local"]) if "local" in two else None))
            if name is None:
                yield wrong("id")
            elif phase in ("s", "t", "f") and (isinstance(name, bool) or not isinstance(name, int) or not 0 <= name < 1 << 53):
                yield wrong("the id of a flow is not an integer: Perfetto drops it")
            elif phase in ("b", "e", "n"):
                begun[e.get("cat"), str(name)].append((e["ts"], {"b": 0, "n": 1, "e": 2}[phase], at, e["name"]))
            else:
                flows.setdefault((e.get("cat"), e["name"], str(name)), {}).setdefault(phase, []).append((e, at))
        elif phase == "i" and e.get("s", "t") not in ("g", "p", "t"):
            yield wrong("scope")
        elif phase == "C" and not (e.get("args") and all(number(v) for v in e["args"].values())):
            yield wrong("counter")
    for pid in {e["pid"] for e in events} - named:
        yield f"process {pid} has no name"
    # Slices of one thread nest; one that begins in another and ends after it is dropped.
    for track, found in slices.items():
        open_until = []
        for ts, minus, at in sorted(found):
            while open_until and open_until[-1] <= ts:
                open_until.pop()
            if open_until and ts - minus > open_until[-1]:
                yield f"event {at}: overlaps another slice of {track} without lying in it"
            open_until.append(ts - minus)
    for name, found in begun.items():
        names = []
        for ts, kind, at, called in sorted(found):
            if kind == 0:
                names.append(called)
            elif kind == 2 and not names:
                yield f"event {at}: {name} ends before it begins"
            elif kind == 2 and names.pop() != called:
                yield f"event {at}: {name} begins with another name: chrome://tracing draws neither"
    for name, found in flows.items():
        for phase in found:
            if len(found[phase]) > 1 and phase != "t":
                yield f"flow {name}: {len(found[phase])} times {phase}"
        for e, at in (one for ones in found.values() for one in ones):
            if e["ph"] == "f" and e.get("bp") != "e":
                yield f"event {at}: the end of a flow binds to the next slice"
            # Perfetto looks among the slices that are open: the slice stands before in the file, and is longer than nothing.
            first = near(slices[e["pid"], e["tid"]], nanoseconds(e["ts"]))
            if not any(ts == nanoseconds(e["ts"]) and minus < 0 and slice_at < at for ts, minus, slice_at in first):
                yield f"event {at}: no slice for a flow to bind to"
        if "s" in found and "f" in found and found["f"][0][0]["ts"] < found["s"][0][0]["ts"]:
            yield f"flow {name}: ends before it begins: Perfetto drops it"
        if "f" in found and "s" not in found:
            yield f"flow {name}: ends without a beginning"

def near(track, ts):
    import bisect
    key = id(track)
    if key not in sorted_tracks:
        sorted_tracks[key] = sorted(track)
    ordered = sorted_tracks[key]
    first = bisect.bisect_left(ordered, (ts, -math.inf, 0))
    return ordered[first : first + 1]

sorted_tracks = {}
found = list(problems(json.load(open(sys.argv[1]))))
for line in found[:10]:
    print(line)
if found:
    sys.exit(f"{len(found)} rules of the format are broken")
