// SPDX-License-Identifier: Apache-2.0
// What the samples of a record say of links: rates, and when links were cut. Draws nothing.
"use strict";
const reading = (() => {
  // A sample carries the time at which the processes have counted, by their own clocks (`counted_at_seconds`, from their begin on). When it has
  // arrived says nothing: a slow connection holds samples up, and what was counted during a cut comes all at once. Much less than two seconds
  // says nothing of a rate.
  const SHORTEST = 1;

  // Bytes a second of one link, by the index of the sample that ends a step; null: no step ends there.
  const rates = (points) => {
    const all = points.map(() => null);
    const time = ({ link, at }) => (typeof link.counted_at_seconds === "number" ? link.counted_at_seconds : at);
    // Before the first sample nothing had passed when the processes began.
    const ends = [{ time: 0, sent: 0, i: null }];
    const known = points.map((p, i) => ({ ...p, i })).filter((p) => p.link);
    known.forEach((point, k) => {
      const step = { time: time(point), sent: point.link.sent_bytes, i: point.i };
      const before = ends[ends.length - 1];
      if (step.time - before.time >= SHORTEST) {
        ends.push(step);
      } else if (k + 1 === known.length && step.sent > before.sent) {
        // The last one counts with the step before it, or is alone.
        if (ends.length > 1) ends.pop();
        ends.push(step);
      }
    });
    for (let k = 1; k < ends.length; k += 1) {
      const [from, to] = [ends[k - 1], ends[k]];
      all[to.i] = Math.max(0, to.sent - from.sent) / Math.max(to.time - from.time, SHORTEST);
    }
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

  return { rates, cuts, times, date };
})();
