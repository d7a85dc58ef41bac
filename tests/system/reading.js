// SPDX-License-Identifier: Apache-2.0
// What the page of a job makes of samples: `node reading.js crates/cli/src/report/reading.js`.
"use strict";
const assert = require("assert");
const reading = eval(`${require("fs").readFileSync(process.argv[2], "utf8")}; reading`);
const MB = 1e6;
const points = (rows) => rows.map(([at, sent, more]) => ({ at, link: { sent_bytes: sent * MB, channels_away: 0, cuts: 0, ...more } }));
const peak = (p, cut) => Math.max(...reading.rates(p, cut || p.map(() => false), !cut).filter((r) => r !== null));

// A link of 10 MB/s. At its end a process tells what has passed since the last sample, 0.04 s after that.
assert.strictEqual(peak(points([[0, 0], [2, 20], [4, 40], [4.04, 48]])), 10 * MB);
assert.strictEqual(peak(points([[0, 0], [2, 20], [4, 40], [5.5, 68]])), 10 * MB);
// All was sent at the end.
assert.ok(peak(points([[0, 0], [2, 0], [4, 0], [4.04, 8]])) <= 4 * MB && peak(points([[0, 0], [2, 0], [4.04, 8]])) > 0);
// A job that is over before there is a second sample.
assert.ok(peak(points([[0, 0], [0.1, 1]])) <= 10 * MB);
assert.deepStrictEqual(reading.rates([], []), []);

// The link is cut from 4 to 14; what the far side has counted comes all at once.
const cut = points([[0, 0], [2, 20], [4, 40], [8, 40], [12, 40, { channels_away: 1 }], [14, 55, { cuts: 1 }], [16, 140, { cuts: 1 }], [18, 160, { cuts: 1 }]]);
const when = reading.cuts([cut]);
assert.deepStrictEqual(when, [false, false, false, false, true, true, false, false]);
assert.ok(peak(cut, when) <= 10 * MB, String(peak(cut, when)));
assert.deepStrictEqual(reading.rates(cut, when).map((r) => r && Math.round(r / MB * 10) / 10), [null, 10, 10, null, null, null, 8.3, 10]);
assert.deepStrictEqual(reading.times([cut], when), [{ from: 8, to: 14 }]);

// It is cut still; the other direction says so.
const well = points([[0, 0], [2, 20], [4, 20]]), away = points([[0, 0], [2, 20], [4, 20, { channels_away: 1 }]]);
assert.deepStrictEqual(reading.times([well, away], reading.cuts([well, away])), [{ from: 2, to: null }]);

assert.match(reading.date(0), /^19(69|70)-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d$/);
process.env.TZ = "Asia/Kolkata";
assert.strictEqual(reading.date(0), "1970-01-01T05:30:00+05:30");
process.env.TZ = "America/St_Johns";
assert.strictEqual(reading.date(1795867200000), "2026-11-28T08:30:00-03:30");
assert.strictEqual(reading.state("active"), "running");
