// SPDX-License-Identifier: Apache-2.0
// What the page of a job makes of samples: `node reading.js crates/cli/src/report/reading.js`.
"use strict";
const assert = require("assert");
const reading = eval(`${require("fs").readFileSync(process.argv[2], "utf8")}; reading`);
const MB = 1e6;
// `counted`: when the processes counted, after their begin; samples arrive at `at`.
const points = (rows) => rows.map(([at, sent, more]) => ({ at: at + 3, link: { sent_bytes: sent * MB, counted_at_seconds: at, channels_away: 0, cuts: 0, ...more } }));
const late = (rows) => rows.map(([at, counted, sent, more]) => points([[counted, sent, more]]).map((p) => ({ ...p, at }))[0]);
const rounded = (p) => reading.rates(p).map((r) => r && Math.round(r / MB * 10) / 10);
const peak = (p) => Math.max(...reading.rates(p).filter((r) => r !== null));

// A link of 10 MB/s. At its end a process tells what has passed since the last sample, 0.04 s after that.
assert.deepStrictEqual(rounded(points([[0, 0], [2, 20], [4, 40], [4.04, 40.4]])), [null, 10, null, 10]);
assert.deepStrictEqual(rounded(points([[0, 0], [2, 20], [4, 40], [5.5, 55]])), [null, 10, 10, 10]);
// All was sent at the end; in a job that is over before there is a second sample.
assert.deepStrictEqual(rounded(points([[0, 0], [2, 0], [4, 0], [4.04, 8]])), [null, 0, null, 3.9]);
assert.ok(peak(points([[0, 0], [0.1, 1]])) <= 10 * MB);
assert.deepStrictEqual(reading.rates([]), []);

// Samples that arrive late, and two at once: the clocks of the processes count.
assert.deepStrictEqual(rounded(late([[0, 0, 0], [5.9, 2, 20], [6, 4, 40], [6.01, 6, 60]])), [null, 10, 10, 10]);
// Nothing new has come; a clock that goes back; a link that begins later; samples without times.
assert.deepStrictEqual(rounded(late([[2, 2, 20], [4, 2, 20], [6, 6, 60]])), [10, null, 10]);
assert.ok(reading.rates(late([[2, 2, 20], [4, 1, 30], [6, 1e300, 60]])).every((r) => r === null || Number.isFinite(r)));
assert.deepStrictEqual(rounded([{ at: 2 }, ...points([[4, 40]])]), [null, 10]);
assert.deepStrictEqual(rounded([0, 2].map((at) => ({ at, link: { sent_bytes: at * 10 * MB } }))), [null, 10]);

// The link is cut from 4 to 14, and so is the connection on which samples come.
const cut = late([[0, 0, 0], [2, 2, 20], [4, 4, 40], [8, 4, 40], [12, 12, 40, { channels_away: 1 }], [14, 14, 40, { cuts: 1 }], [16, 16, 60, { cuts: 1 }]]);
const when = reading.cuts([cut]);
assert.deepStrictEqual(when, [false, false, false, false, true, true, false]);
assert.deepStrictEqual(rounded(cut), [null, 10, 10, null, 0, 0, 10]);
assert.deepStrictEqual(reading.times([cut], when), [{ from: 8, to: 14 }]);

// It is cut still; the other direction says so.
const well = points([[0, 0], [2, 20], [4, 20]]), away = points([[0, 0], [2, 20], [4, 20, { channels_away: 1 }]]);
assert.deepStrictEqual(reading.times([well, away], reading.cuts([well, away])), [{ from: 5, to: null }]);

assert.match(reading.date(0), /^19(69|70)-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d$/);
process.env.TZ = "Asia/Kolkata";
assert.strictEqual(reading.date(0), "1970-01-01T05:30:00+05:30");
process.env.TZ = "America/St_Johns";
assert.strictEqual(reading.date(1795867200000), "2026-11-28T08:30:00-03:30");
