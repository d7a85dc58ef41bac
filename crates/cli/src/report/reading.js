// SPDX-License-Identifier: Apache-2.0
// What the samples of a record say of links: rates, and when links were cut. Draws nothing.
"use strict";
const reading = (() => {
  // Samples are taken every two seconds; what has passed in much less says nothing of a rate. They tell what processes had counted a moment before.
  // That moment is the same from sample to sample, but for the last one of a job, `closes`: it catches up, in next to no time.
  const SHORTEST = 1;

  // Steps of one link, by the index of the sample that ends them. `cut`: by sample, whether the link was cut in that step. What could not be told
  // while it was cut comes at once afterwards: a rate is one of the whole time, from the last bytes before it on.
  const rates = (points, cut, closes) => {
    const sent = (i) => (points[i].link ? points[i].link.sent_bytes : 0);
    const joined = points.map((_, i) => i > 0 && (cut[i] || cut[i - 1]));
    for (let i = points.length - 2; i > 0; i -= 1) {
      if (joined[i + 1] && sent(i) === sent(i - 1)) joined[i] = true;
    }
    const all = points.map(() => null);
    // The points between which there are rates.
    const ends = [0];
    for (let i = 1; i < points.length; i += 1) {
      const goesOn = joined[i] && i + 1 < points.length && joined[i + 1];
      if (!goesOn && points[i].at - points[ends[ends.length - 1]].at >= SHORTEST) ends.push(i);
    }
    const last = points.length - 1;
    // The last step counts with the one before it where it is too short, or is the first with anything in it.
    const inner = ends.filter((end) => end !== last);
    const alone = closes ? inner.every((end) => sent(end) === 0) : inner.length === ends.length;
    if (alone && inner.length > 1) inner.pop();
    if (last > 0) inner.push(last);
    for (let k = 1; k < inner.length; k += 1) {
      const [from, to] = [inner[k - 1], inner[k]];
      const time = points[to].at - points[from].at;
      if (time > 0 && points[to].link) all[to] = (sent(to) - sent(from)) / Math.max(time, SHORTEST);
    }
    if (closes && all.some((r, i) => i < last && r > 0)) all[last] = null;
    return all;
  };

  // `points`: of both directions of a link. By sample, whether it was cut in the step that ends there.
  const cuts = (directions) => (directions[0] || []).map((_, i) => directions.some((points) => {
    const now = points[i].link, before = i > 0 ? points[i - 1].link : null;
    return Boolean(now) && (now.channels_away > 0 || (now.cuts || 0) > ((before && before.cuts) || 0));
  }));

  // From when to when, in seconds since the begin; `to` is null while it lasts.
  const times = (directions, cut) => {
    const found = [];
    cut.forEach((is, i) => {
      if (!is) return;
      const points = directions[0], from = points[Math.max(0, i - 1)].at;
      const away = directions.some((d) => d[i].link && d[i].link.channels_away > 0);
      const to = away ? null : points[i].at;
      const open = found[found.length - 1];
      if (open && open.to === null) open.to = to; else found.push({ from: i > 0 ? from : points[i].at, to });
      // It was whole again by the next sample.
      const next = i + 1 < cut.length && !cut[i + 1];
      if (away && next) found[found.length - 1].to = points[i + 1].at;
    });
    return found;
  };

  // `2026-11-28T13:05:00+01:00`.
  const two = (value) => String(Math.floor(Math.abs(value))).padStart(2, "0");
  const date = (milliseconds) => {
    const at = new Date(milliseconds), zone = -at.getTimezoneOffset();
    const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
    return `${day}T${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}${zone < 0 ? "-" : "+"}${two(zone / 60)}:${two(zone % 60)}`;
  };

  // The states of subjobs in the words of the book.
  const STATES = { unsubmitted: "not submitted", "stage-in": "copying inputs", pending: "queued or starting", active: "running",
    suspended: "suspended", "stage-out": "copying outputs", done: "ended", failed: "failed" };
  const state = (name) => STATES[name] || name;

  return { rates, cuts, times, date, state };
})();
