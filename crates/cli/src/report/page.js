// SPDX-License-Identifier: Apache-2.0
// Draws the record of a job. Everything that comes from a record is set as text, never as HTML.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const COLOURS = 8;
  const make = (name, attributes = {}, ...children) => {
    const svg = ["svg", "g", "line", "path", "circle", "rect", "text", "title"].includes(name);
    const node = svg ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children.filter((c) => c !== null && c !== undefined).map((c) => (c instanceof Node ? c : String(c))));
    return node;
  };
  const scaled = (value, units) => {
    let unit = 0;
    while (value >= 1000 && unit + 1 < units.length) { value /= 1000; unit += 1; }
    return `${value.toFixed(unit > 0 && value < 100 ? 1 : 0)} ${units[unit]}`;
  };
  const bytes = (value) => scaled(value, ["B", "kB", "MB", "GB", "TB"]);
  const rate = (value) => scaled(value * 8, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"]);
  const seconds = (value) => {
    if (value === 0) return "0 s";
    if (value < 1) return `${(value * 1000).toFixed(value < 0.1 ? 1 : 0)} ms`;
    if (value < 120) return `${value.toFixed(1)} s`;
    return value < 7200 ? `${(value / 60).toFixed(1)} min` : `${(value / 3600).toFixed(1)} h`;
  };
  const colour = (i) => getComputedStyle(document.documentElement).getPropertyValue(`--c${i % COLOURS}`).trim();
  const table = (caption, heads, rows) => {
    const kind = (i) => (heads[i].startsWith("#") ? { class: "n" } : {});
    const head = make("tr", {}, ...heads.map((h, i) => make("th", { scope: "col", ...kind(i) }, h.replace("#", ""))));
    const body = rows.map((row) => make("tr", {}, ...row.map((cell, i) => make("td", kind(i), cell))));
    const all = make("table", { "aria-label": caption }, make("thead", {}, head), make("tbody", {}, ...body));
    // The words above do not go sideways with the table.
    return make("div", {}, make("p", { class: "dim caption" }, caption), make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, all));
  };

  // What the record says, in the forms that the parts of the page want.
  const read = (lines) => {
    const of = (event) => lines.filter((l) => l.event === event);
    const record = of("record")[0] || { words: [], subjobs: [] };
    const start = lines.length ? lines[0].time : 0;
    const last = lines.length ? lines[lines.length - 1].time : 0;
    const samples = of("traffic").map((l) => ({ at: l.time - start, links: l.links }));
    const keys = [...new Set(samples.flatMap((s) => s.links.map((l) => `${l.from}\u0000${l.to}`)))].sort();
    const links = keys.map((key) => {
      const [from, to] = key.split("\u0000");
      const points = samples.map((s) => ({ at: s.at, link: s.links.find((l) => l.from === from && l.to === to) }));
      return { from, to, points, final: points.map((p) => p.link).filter(Boolean).pop() };
    });
    // Both directions of a link are cut together.
    const cuts = [];
    for (const link of links) {
      const back = links.find((l) => l.from === link.to && l.to === link.from);
      const directions = back ? [link.points, back.points] : [link.points];
      const cut = reading.cuts(directions);
      link.rates = reading.rates(link.points);
      link.peak = Math.max(0, ...link.rates.filter((r) => r !== null));
      const times = reading.times(directions, cut);
      link.away = times.some((t) => t.to === null);
      if (!back || link.from < link.to) cuts.push(...times.map((t) => ({ ...t, ends: [link.from, link.to] })));
    }
    const begun = of("start")[0];
    return { lines, record, start, last, samples, links, cuts, end: of("end")[0], begun: begun ? begun.time - start : null, sums: of("sums")[0], of };
  };

  const header = (job, name) => {
    const { record, end } = job;
    const state = !end ? make("span", {}, "running") : end.status === 0 ? make("span", { class: "good" }, "ended well")
      : make("span", { class: "bad" }, `ended with status ${end.status}`);
    const parts = [make("h1", {}, `Job ${record.name ? `${record.name} (${name})` : name}`), make("p", {}, state, ` · ${record.processes} processes · ${record.subjobs.length} sites · `,
      `${seconds(job.last - job.start)} · began ${reading.date(job.start * 1000)}`),
      make("p", { class: "mono dim" }, record.words.join(" "))];
    if (end && end.problem) {
      parts.push(make("div", { class: "problem", role: "alert" }, make("p", {}, end.problem), end.hint ? make("p", { class: "dim" }, end.hint) : null));
    }
    return make("header", {}, ...parts);
  };

  const pairs = (job) => {
    const all = new Map();
    for (const link of job.links) {
      const ends = [link.from, link.to].sort();
      const key = ends.join("\u0000");
      const pair = all.get(key) || { ends, links: [] };
      pair.links.push(link);
      all.set(key, pair);
    }
    return [...all.values()];
  };
  const tripOf = (pair) => {
    const trips = pair.links.map((l) => l.final && l.final.round_trip_seconds).filter((t) => t > 0);
    return trips.length ? Math.min(...trips) : null;
  };
  const pathOf = (job, ends) => {
    const path = ((job.sums && job.sums.paths) || []).find((p) => [...p.between].sort().join("\u0000") === ends.join("\u0000"));
    return path ? path.path : "";
  };

  // Drawings are made for the width that there is, so that their words keep their size on a phone and on a desk.
  const room = (most) => Math.max(280, Math.min(document.querySelector("main").clientWidth, most));
  const drawing = (width, height, label) => make("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
  const shortened = (name, most) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);

  // Where the words of a link stand: on its line, where they cover neither a site nor the words of another link; nowhere if there is no such place.
  const ALONG = [0.5, 0.4, 0.6, 0.32, 0.68, 0.25, 0.75];
  const LETTER = 7, LINE = 17, SITE = 34;
  const label = (words, [a, b], taken, width) => {
    const w = LETTER * Math.max(...words.map((l) => l.length)) + 10, h = LINE * words.length + 4;
    for (const along of ALONG) {
      const x = Math.max(w / 2, Math.min(width - w / 2, a[0] + (b[0] - a[0]) * along)), y = a[1] + (b[1] - a[1]) * along;
      const box = { left: x - w / 2, right: x + w / 2, top: y - h / 2, bottom: y + h / 2 };
      if (taken.some((t) => box.left < t.right && t.left < box.right && box.top < t.bottom && t.top < box.bottom)) continue;
      taken.push(box);
      const lines = words.map((line, i) => make("text", { x, y: box.top + LINE * (i + 0.85), "text-anchor": "middle" }, line));
      return make("g", { class: "label" }, make("rect", { x: box.left, y: box.top, width: w, height: h, rx: 4 }), ...lines);
    }
    return null;
  };

  const map = (job) => {
    const sites = job.record.subjobs;
    const width = room(720), height = sites.length > 2 ? 400 : 130;
    const across = Math.min(210, width / 2 - (sites.length > 2 ? 70 : SITE + 2)), up = height / 2 - 50;
    const place = (i) => {
      const angle = Math.PI + (2 * Math.PI * i) / Math.max(1, sites.length);
      return [width / 2 + across * Math.cos(angle), height / 2 + up * Math.sin(angle)];
    };
    const where = new Map(sites.map((s, i) => [s.name, place(i)]));
    const svg = drawing(width, height, "Sites and the links between them; the table of links has the same figures");
    const most = Math.max(1, ...job.links.map((l) => l.final.sent_bytes));
    const taken = [...where.values()].map(([x, y]) => ({ left: x - SITE, right: x + SITE, top: y - SITE, bottom: y + SITE }));
    const labels = [];
    for (const pair of pairs(job)) {
      const ends = pair.ends.map((end) => where.get(end));
      const [a, b] = ends;
      if (!a || !b) continue;
      const sent = Math.max(...pair.links.map((l) => l.final.sent_bytes));
      const cut = pair.links.some((l) => l.away);
      const line = make("line", { x1: a[0], y1: a[1], x2: b[0], y2: b[1], class: cut ? "wire cut" : "wire", "stroke-width": 1.5 + 6 * (sent / most) });
      line.append(make("title", {}, pair.links.map((l) => `${l.from} to ${l.to}: ${bytes(l.final.sent_bytes)}, at most ${rate(l.peak)}`).join("; ")));
      svg.append(line);
      const trip = tripOf(pair);
      const words = [[trip ? seconds(trip) : null, cut ? "is cut" : null].filter(Boolean).join(" · "), bothWays(pair.links.map((l) => rate(l.peak)))];
      labels.push(label(words.filter(Boolean), ends, taken, width));
    }
    svg.append(...labels.filter(Boolean));
    for (const site of sites) {
      const [x, y] = where.get(site.name);
      svg.append(make("circle", { cx: x, cy: y, r: SITE, class: "site" }),
        make("text", { x, y: y - 1, "text-anchor": "middle" }, shortened(site.name, 9)),
        make("text", { x, y: y + 15, "text-anchor": "middle", class: "dim" }, `${site.processes} ${site.processes === 1 ? "rank" : "ranks"}`));
    }
    const text = "Width: bytes that passed. Labels: round trip, largest rate each way. Dashed: the link is cut.";
    const more = labels.every(Boolean) ? "" : " Where there is no room for a label, the table of links has the figures.";
    return part("Sites and links", svg, make("p", { class: "dim" }, text + more));
  };
  // `6.4 Mbit/s` and `3.5 Mbit/s` are `6.4 / 3.5 Mbit/s`.
  const bothWays = (rates) => {
    const parts = rates.map((r) => r.split(" "));
    return parts.every(([, unit]) => unit === parts[0][1]) ? `${parts.map(([n]) => n).join(" / ")} ${parts[0][1]}` : rates.join(" / ");
  };

  const part = (title, ...children) => {
    const id = title.toLowerCase().replace(/[^a-z]+/g, "-");
    return make("section", { "aria-labelledby": id }, make("h2", { id }, title), ...children);
  };

  const timeline = (job) => {
    const sites = job.record.subjobs.map((s) => s.name);
    const changes = job.of("state");
    const until = Math.max(job.last - job.start, 0.001);
    const states = [...new Set(changes.map((c) => c.state))];
    const width = room(Infinity), left = width < 500 ? 84 : 130, row = 30, height = sites.length * row + 34;
    const x = (at) => left + (at / until) * (width - left - 10);
    const svg = drawing(width, height, "State of each site over time; the table below has the same figures");
    const rows = [];
    sites.forEach((site, i) => {
      const own = changes.filter((c) => c.site === site);
      svg.append(make("text", { x: left - 10, y: i * row + 20, "text-anchor": "end" }, shortened(site, width < 500 ? 10 : 15)));
      own.forEach((change, k) => {
        const from = change.time - job.start;
        const to = k + 1 < own.length ? own[k + 1].time - job.start : until;
        const bar = make("rect", { x: x(from), y: i * row + 5, width: Math.max(1, x(to) - x(from)), height: row - 10, fill: colour(states.indexOf(change.state)) });
        bar.append(make("title", {}, `${site}: ${change.state} for ${seconds(to - from)}${change.detail ? ` (${change.detail})` : ""}`));
        svg.append(bar);
        rows.push([site, change.state, seconds(from), seconds(to - from), change.detail || ""]);
      });
    });
    const base = sites.length * row + 4;
    svg.append(make("line", { x1: left, y1: base, x2: width - 10, y2: base, class: "axis" }));
    for (let i = 0; i <= 4; i += 1) {
      svg.append(make("text", { x: x((until * i) / 4), y: base + 18, "text-anchor": i === 4 ? "end" : "middle", class: "dim" }, seconds((until * i) / 4)));
    }
    const legend = states.map((state, i) => make("li", {}, make("i", { style: `background:${colour(i)}` }), state));
    const details = make("details", {}, make("summary", {}, "As a table"), table("States of the sites", ["site", "state", "#from", "#for", "detail"], rows));
    return part("From start to end", svg, make("ul", { class: "legend" }, ...legend), details);
  };

  const throughput = (job, charts) => {
    if (job.samples.length < 2 || !job.links.length) return null;
    const box = make("div");
    charts.push(() => {
      const fg = getComputedStyle(document.body).color, line = getComputedStyle(document.documentElement).getPropertyValue("--line").trim();
      const axis = { stroke: fg, grid: { stroke: line, width: 1 }, ticks: { stroke: line } };
      const series = job.links.map((l, i) => ({ label: `${l.from} to ${l.to}`, stroke: colour(i), width: 2, spanGaps: true,
        dash: i >= COLOURS ? [6, 4] : undefined, value: (_, v) => (v === null || v === undefined ? "" : rate(v)) }));
      const marks = (chart) => job.cuts.forEach((cut) => {
        const [from, to] = [cut.from, cut.to === null ? job.last - job.start : cut.to].map((at) => chart.valToPos(at, "x", true));
        const { left, top, width, height } = chart.bbox;
        const begin = Math.max(left, Math.min(from, left + width)), end = Math.max(left, Math.min(to, left + width));
        chart.ctx.save();
        chart.ctx.globalAlpha = 0.2;
        chart.ctx.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--bad").trim();
        chart.ctx.fillRect(begin, top, Math.max(2, end - begin), height);
        chart.ctx.restore();
      });
      const options = { width: room(Infinity), height: 300, scales: { x: { time: false }, y: { range: (_, low, high) => [0, Math.max(1, high * 1.1)] } }, legend: { live: true }, hooks: { drawClear: [marks] },
        axes: [{ ...axis, label: "seconds since the job began" }, { ...axis, size: 96, values: (_, all) => all.map((v) => rate(v)) }],
        series: [{ label: "time", value: (_, v) => (v === null || v === undefined ? "" : seconds(v)) }, ...series] };
      const chart = new uPlot(options, [job.samples.map((s) => s.at), ...job.links.map((l) => l.rates)], box);
      return { destroy: () => chart.destroy() };
    });
    const rows = job.links.map((l) => [l.from, l.to, rate(l.peak), rate(l.final.sent_bytes / Math.max(1, l.final.counted_at_seconds || job.last - job.start - (job.begun || 0)))]);
    const cuts = job.cuts.length ? make("p", { class: "dim" }, "Shaded: a link was cut.") : null;
    return part("Throughput of each link", box, ...(cuts ? [cuts] : []), make("details", {}, make("summary", {}, "As a table"),
      table("Rates on the wire, while the processes ran", ["from", "to", "#largest", "#mean"], rows)));
  };

  const links = (job) => {
    const rows = job.links.map((l) => [`${l.from} to ${l.to}`, pathOf(job, [l.from, l.to].sort()) || "-", bytes(l.final.sent_bytes),
      l.final.round_trip_seconds ? seconds(l.final.round_trip_seconds) : "-", l.final.connections,
      l.final.before_compression_bytes ? `${(l.final.before_compression_bytes / Math.max(1, l.final.after_compression_bytes)).toFixed(1)} : 1` : "-",
      l.final.tcp_retransmitted_bytes ? bytes(l.final.tcp_retransmitted_bytes) : "-",
      l.final.cuts ? `${l.final.cuts} (longest ${seconds(l.final.longest_cut_seconds)})` : "-"]);
    if (!rows.length) return part("Links", make("p", {}, "Nothing has passed between sites."));
    return part("Links", table("Sums since the processes began; bytes are on the wire, after compression",
      ["link", "path", "#sent", "#round trip", "#connections", "#compression", "#sent again", "#cuts"], rows));
  };

  const matrix = (job) => {
    const names = job.record.subjobs.map((s) => s.name);
    if (!job.links.length || names.length > 24) return null;
    const cell = (from, to) => {
      const link = job.links.find((l) => l.from === from && l.to === to);
      return link ? bytes(link.final.sent_bytes) : from === to ? "within" : "-";
    };
    return part("Who talks to whom", table("Bytes on the wire, from the row's site to the column's", ["from", ...names.map((n) => `#${n}`)],
      names.map((from) => [from, ...names.map((to) => cell(from, to))])));
  };

  const operations = (job) => {
    const all = (job.sums && job.sums.operations) || [];
    if (!all.length) return null;
    const levels = [...new Set(all.flatMap((o) => o.levels.map((l) => l.level)))];
    const heads = ["operation", "#calls", ...levels.map((l) => `#${l}`)];
    const rows = all.map((o) => [o.operation, o.calls, ...levels.map((name) => {
      const level = o.levels.find((l) => l.level === name);
      return level ? `${level.messages} messages, ${bytes(level.bytes)}` : "-";
    })]);
    return part("What the processes sent", table("Sums over all processes, by level of the network", heads, rows));
  };

  // Where the time of the processes went; while the job runs, as the last sample has it.
  const timeLost = (job) => {
    const sample = [...job.of("traffic")].reverse().find((l) => l.times && l.times.length);
    const times = (job.sums && job.sums.times && job.sums.times.length ? job.sums.times : sample && sample.times) || [];
    if (!times.length) return null;
    const kinds = [["computing", "computing_seconds"], ["waiting for messages", "message_wait_seconds"],
      ["in collective operations", "collective_wait_seconds"], ["waiting now", "waiting_now_seconds"]]
      .filter(([, key], i) => i < 3 || times.some((t) => t[key] > 0));
    const share = (t, key) => t[key] / Math.max(1e-9, t.seconds);
    const percent = (value) => `${(100 * value).toFixed(1)} %`;
    const width = room(Infinity), left = width < 500 ? 84 : 130, row = 30, height = times.length * row + 8;
    const svg = drawing(width, height, "What the processes of each site did with their time; the table has the same figures");
    times.forEach((t, i) => {
      svg.append(make("text", { x: left - 10, y: i * row + 20, "text-anchor": "end" }, shortened(t.site, width < 500 ? 10 : 15)));
      let at = left;
      kinds.forEach(([name, key], k) => {
        const long = share(t, key) * (width - left - 10);
        const bar = make("rect", { x: at, y: i * row + 5, width: Math.max(0, long), height: row - 10, fill: colour(k) });
        bar.append(make("title", {}, `${t.site}: ${name} ${percent(share(t, key))}`));
        svg.append(bar);
        at += long;
      });
    });
    const legend = kinds.map(([name], k) => make("li", {}, make("i", { style: `background:${colour(k)}` }), name));
    const sites = table("Share of the time since MPI_Init, all processes of a site together", ["site", "#processes", "#time of each", ...kinds.map(([name]) => `#${name}`)],
      times.map((t) => [t.site, t.processes, seconds(t.seconds / Math.max(1, t.processes)), ...kinds.map(([, key]) => percent(share(t, key)))]));
    const calls = times.flatMap((t) => (t.calls || []).map((c) => ({ site: t.site, ...c }))).sort((a, b) => b.seconds - a.seconds);
    const rows = calls.slice(0, 40).map((c) => [c.site, c.call, c.kind, c.level, c.waits, seconds(c.seconds), seconds(c.seconds / Math.max(1, c.waits))]);
    const parts = [svg, make("ul", { class: "legend" }, ...legend), sites];
    if (rows.length) parts.push(table("Waits by call, and by the level of the network from which came what was waited for", ["site", "call", "for a", "level", "#waits", "#together", "#mean"], rows));
    return part("Where the time went", ...parts);
  };

  // What the library chose for collective operations between sites, and what it would have cost otherwise.
  const choices = (job) => {
    const all = (job.sums && job.sums.choices) || [];
    const rows = all.filter((c) => c.ways.length).map((c) => {
      const taken = c.ways.find((w) => w.chosen) || c.ways[0];
      const others = c.ways.filter((w) => w !== taken).sort((a, b) => a.seconds - b.seconds);
      const best = others[0];
      const why = !best ? "the only way" : taken.seconds <= best.seconds ? `costs least; next: ${best.name}, ${seconds(best.seconds)}`
        : `as good as ${best.name} (${seconds(best.seconds)}) within the error of estimates, and loads slow links less`;
      return [c.operation, c.members, bytes(c.block_bytes), c.calls, taken.name, seconds(taken.seconds), why];
    });
    if (!rows.length) return null;
    return part("What was chosen for collective operations", table("Estimates for one call with the links that were in force; isthmus explain shows what makes them up",
      ["operation", "#members", "#block", "#calls", "chosen", "#estimate", "why"], rows));
  };

  const events = (job) => {
    const words = (e) => {
      switch (e.event) {
        case "cut": return `the link between ${e.ends[0]} and ${e.ends[1]} is cut`;
        case "whole again": return `the link between ${e.ends[0]} and ${e.ends[1]} is whole again`;
        case "state": return `${e.site}: ${e.state}${e.detail ? `, ${e.detail}` : ""}`;
        case "start": return `${e.processes} processes begin`;
        case "exit": return `rank ${e.rank} at ${e.site} ended ${e.signal ? `by signal ${e.signal}` : `with status ${e.status}`}`;
        case "drop": case "question": return `${e.site}: ${e.problem}`;
        case "substitute": return `${e.site} runs at ${e.place}: ${e.problem}`;
        case "end": return e.problem || `the job ended with status ${e.status}`;
        case "truncated": return "the record is full: nothing further is kept";
        default: return e.text || "";
      }
    };
    const cuts = job.cuts.flatMap((c) => [{ event: "cut", time: job.start + c.from, ends: c.ends },
      ...(c.to === null ? [] : [{ event: "whole again", time: job.start + c.to, ends: c.ends }])]);
    const shown = [...job.lines, ...cuts].sort((a, b) => a.time - b.time).filter((e) => !["record", "traffic", "sums", "begin"].includes(e.event))
      .filter((e) => !(e.event === "exit" && e.status === 0));
    const rows = shown.slice(0, 500).map((e) => [seconds(e.time - job.start), e.event, words(e)]);
    return part("Events", table(shown.length > 500 ? `The first 500 of ${shown.length}` : "What happened, in order", ["#after", "event", "what"], rows));
  };

  let drawn = [], drawnFor = 0;
  const draw = (name, lines) => {
    const job = read(lines);
    const charts = [];
    const open = [...document.querySelectorAll("details")].map((d) => d.open);
    const parts = [header(job, name), map(job), timeline(job), throughput(job, charts), timeLost(job), matrix(job), links(job), operations(job), choices(job), events(job)];
    document.querySelector("main").replaceChildren(...parts.filter(Boolean));
    drawnFor = room(Infinity);
    drawn.forEach((chart) => chart.destroy());
    drawn = charts.map((chart) => chart());
    document.querySelectorAll("details").forEach((d, i) => { d.open = Boolean(open[i]); });
  };

  // A page that is served is kept up to date: only what is new is asked for, and nothing is drawn again without news.
  const follow = (data) => {
    const told = make("p", { class: "dim", id: "live" });
    document.body.append(told);
    const say = (text) => { told.textContent = text; };
    const next = async () => {
      try {
        const answer = await fetch(`lines?from=${data.lines.length}`, { cache: "no-store" });
        if (!answer.ok) throw new Error(answer.statusText);
        const { lines } = await answer.json();
        const inside = document.querySelector("main").contains(document.activeElement);
        data.lines.push(...lines);
        // Whoever reads with the keyboard is not thrown out of where they are.
        if (lines.length && !inside) draw(data.job, data.lines);
        say(`Live: as of ${reading.date(Date.now())}`);
      } catch {
        say("The command that served this page has ended, or cannot be reached: this is how it was then.");
        return;
      }
      const over = data.lines.some((l) => l.event === "sums");
      if (over) { draw(data.job, data.lines); say("The job has ended: this is its last state."); } else setTimeout(next, 2000);
    };
    next();
  };

  const data = JSON.parse(document.getElementById("data").textContent);
  draw(data.job, data.lines);
  if (data.live) follow(data);
  // A phone's bars come and go while it scrolls: only another width is news.
  window.addEventListener("resize", () => { if (room(Infinity) !== drawnFor) draw(data.job, data.lines); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(data.job, data.lines));
})();
