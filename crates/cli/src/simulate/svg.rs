// SPDX-License-Identifier: Apache-2.0
//! A simulation as a drawing: one line per rank, time to the right, messages as arrows, the critical path on top. What
//! all drawings are made of.

use super::report::time;
use super::simulated::Simulated;
use isthmus_simulate::{Kind, Record};
use isthmus_topology::Level;
use std::fmt::Write;

/// Most ranks that have a line each.
const RANKS: usize = 512;
/// Most records of a drawing.
const RECORDS: usize = 100_000;
const LEFT: f64 = 150.0;
const TOP: f64 = 80.0;
const WIDTH: f64 = 1000.0;
const ROW: f64 = 16.0;

/// Readable on light and on dark.
const STYLE: &str = "<style>\
svg{--paper:#fff;--ink:#1a1a1a;--soft:#666;--grid:#ddd;--wide:#c14a00;--local:#7a4fb5;--machine:#00805c;--vendor:#5c7a00;--node:#2f76b5;--path:#c2185b;\
--compute:#8a8a8a;font:11px system-ui,sans-serif;max-width:100%;height:auto}\
@media(prefers-color-scheme:dark){svg{--paper:#161616;--ink:#ececec;--soft:#a0a0a0;--grid:#3a3a3a;--wide:#ff8f4d;--local:#b79cf0;--machine:#2fd0a0;\
--vendor:#b5d14a;--node:#6db8f0;--path:#ff5c93;--compute:#8f8f8f}}\
.paper{fill:var(--paper)}text{fill:var(--ink)}.title{font-size:15px;font-weight:600}.soft{fill:var(--soft)}.small{font-size:10px}\
.grid{stroke:var(--grid)}.half{stroke:var(--paper);stroke-width:2}.span{fill:var(--node)}.curve{fill:none;stroke:var(--node);stroke-width:2}\
.site{fill:none;stroke:var(--ink);stroke-width:1.5}.machine{fill:none;stroke:var(--grid);stroke-width:1.5}.name{font-size:13px;font-weight:600}\
.met{fill:none;stroke:var(--node);stroke-width:1.4;stroke-dasharray:3 3}.path{fill:none;stroke:var(--path);stroke-width:2;stroke-linejoin:round}.dot{fill:var(--ink)}.root{fill:var(--path)}</style>";

/// Whether it is small enough that a line for each rank can be read.
pub(super) fn is_readable(all: &Simulated) -> bool {
    let (ranks, records) = (all.outcome.finished.len(), all.outcome.records.len());
    ranks <= RANKS && records <= RECORDS && !all.outcome.records_dropped
}

/// The drawing, one SVG document.
pub(super) fn draw(all: &Simulated) -> String {
    let ranks = all.outcome.finished.len();
    let height = TOP + ROW * ranks as f64 + 40.0;
    let end = all.outcome.time().max(1);
    let title = format!("{} of {}: {}", all.asked.name, all.asked.size, time(all.outcome.time()));
    let mut line = Timeline {
        canvas: Canvas::new(&title, LEFT + WIDTH + 30.0, height),
        scale: WIDTH / end as f64,
    };
    line.canvas.levels();
    for mark in marks(end) {
        let x = line.x(mark);
        line.canvas.line("grid", (x, TOP), (x, height - 30.0));
        line.canvas.text("soft", "middle", (x, height - 14.0), &time(mark));
    }
    line.rows(all);
    for record in &all.outcome.records {
        line.record(all, record);
    }
    line.path(all.outcome.critical_path());
    line.canvas.finish()
}

/// A drawing under way.
pub(super) struct Canvas {
    text: String,
}

impl Canvas {
    pub(super) fn new(title: &str, width: f64, height: f64) -> Self {
        let mut canvas = Self { text: String::new() };
        let name = escape(title);
        canvas.add(format_args!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}" role="img" aria-label="{name}">{STYLE}"#
        ));
        canvas.add(format_args!(r#"<rect class="paper" width="100%" height="100%"/>"#));
        canvas.text("title", "start", (10.0, 24.0), title);
        canvas
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{element}");
    }

    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }

    /// What the colours mean.
    pub(super) fn levels(&mut self) {
        let keys = Level::ALL.map(|level| (colour(level), level.name())).into_iter();
        for (i, (paint, name)) in keys.chain([("var(--path)", "critical path")]).enumerate() {
            let x = 10 + 120 * i;
            self.add(format_args!(
                r#"<line x1="{x}" y1="44" x2="{}" y2="44" stroke="{paint}" stroke-width="3"/><text x="{}" y="48">{name}</text>"#,
                x + 18,
                x + 24
            ));
        }
    }

    pub(super) fn text(&mut self, class: &str, anchor: &str, (x, y): (f64, f64), text: &str) {
        let text = escape(text);
        self.add(format_args!(
            r#"<text class="{class}" text-anchor="{anchor}" x="{x:.1}" y="{y:.1}">{text}</text>"#
        ));
    }

    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.add(format_args!(
            r#"<line class="{class}" x1="{x1:.2}" y1="{y1:.2}" x2="{x2:.2}" y2="{y2:.2}"/>"#
        ));
    }

    pub(super) fn polyline(&mut self, class: &str, points: &[String]) {
        self.add(format_args!(
            r#"<polyline class="{class}" points="{}"/>"#,
            points.join(" ")
        ));
    }

    /// A bar that says something to those who point at it.
    pub(super) fn bar(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), told: &str) {
        let told = escape(told);
        self.add(format_args!(
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" rx="2"><title>{told}</title></rect>"#
        ));
    }

    /// A way between two nodes.
    pub(super) fn edge(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), paint: &str, told: &str) {
        let told = escape(told);
        self.add(format_args!(
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{paint}" stroke-width="1.6"><title>{told}</title></line>"#
        ));
    }

    /// A site or a machine with what is in it.
    pub(super) fn area(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), name: &str, is_site: bool) {
        let class = if is_site { "site" } else { "machine" };
        self.add(format_args!(
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" rx="6"/>"#
        ));
        self.text(
            if is_site { "name" } else { "soft" },
            "start",
            (x + 8.0, y + 16.0),
            name,
        );
    }

    /// Two nodes that share memory.
    pub(super) fn meeting(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), told: &str) {
        let (told, lift) = (escape(told), if (y1 - y2).abs() < 1.0 { 14.0 } else { 0.0 });
        let (x, y) = ((x1 + x2) / 2.0, (y1 + y2) / 2.0 + lift);
        self.add(format_args!(
            r#"<path class="met" d="M{x1:.1} {y1:.1} Q{x:.1} {y:.1} {x2:.1} {y2:.1}"><title>{told}</title></path>"#
        ));
    }

    /// Messages from one node to another: bent, so that those of the other direction have a way of their own.
    pub(super) fn arrow(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), paint: &str, told: &str) {
        let (dx, dy) = (x2 - x1, y2 - y1);
        let (x, y) = ((x1 + x2) / 2.0 - dy * 0.12, (y1 + y2) / 2.0 + dx * 0.12);
        // The head ends before the dot.
        let length = (x2 - x).hypot(y2 - y).max(1.0);
        let (ux, uy) = ((x2 - x) / length, (y2 - y) / length);
        let (tip_x, tip_y) = (x2 - 8.0 * ux, y2 - 8.0 * uy);
        let (back_x, back_y) = (tip_x - 8.0 * ux, tip_y - 8.0 * uy);
        let (told, wx, wy) = (escape(told), 3.5 * uy, 3.5 * ux);
        self.add(format_args!(
            r#"<g><title>{told}</title><path d="M{x1:.1} {y1:.1} Q{x:.1} {y:.1} {back_x:.1} {back_y:.1}" fill="none" stroke="{paint}" stroke-width="1.6"/><polygon points="{tip_x:.1},{tip_y:.1} {:.1},{:.1} {:.1},{:.1}" fill="{paint}"/></g>"#,
            back_x - wx,
            back_y + wy,
            back_x + wx,
            back_y - wy
        ));
    }

    /// A node, with its name beside it or for those who point at it.
    pub(super) fn dot(&mut self, (x, y): (f64, f64), is_root: bool, is_named: bool, name: &str) {
        let (class, radius) = if is_root {
            ("root", 7.0)
        } else {
            ("dot", if is_named { 4.0 } else { 2.5 })
        };
        let told = escape(name);
        self.add(format_args!(
            r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="{radius}"><title>{told}</title></circle>"#
        ));
        if is_named {
            self.text("small", "start", (x + 8.0, y + 3.5), name);
        }
    }
}

/// Round times from 0 to at most this one, at most eleven.
pub(super) fn marks(end: u64) -> impl Iterator<Item = u64> {
    let power = 10u64.pow(end.max(1).ilog10());
    let steps = [power / 10, power / 5, power / 2].into_iter();
    let step = steps.filter(|&s| s > 0).find(|s| end / s <= 10).unwrap_or(power);
    (0..=end / step).map(move |i| i * step)
}

struct Timeline {
    canvas: Canvas,
    /// Units of the drawing per nanosecond.
    scale: f64,
}

impl Timeline {
    fn x(&self, time: u64) -> f64 {
        LEFT + time as f64 * self.scale
    }

    fn rows(&mut self, all: &Simulated) {
        for rank in 0..all.outcome.finished.len() as u32 {
            let site = all.grid.topology.clusters_of(rank)[0];
            let (y, right) = (y(rank), self.x(all.outcome.finished[rank as usize]));
            let name = format!("{rank} {}", all.grid.sites[site as usize]);
            self.canvas.text("", "end", (LEFT - 8.0, y + 4.0), &name);
            self.canvas.line("grid", (LEFT, y), (right, y));
        }
    }

    fn record(&mut self, all: &Simulated, record: &Record) {
        let (from, to) = (self.x(record.begin), self.x(record.end));
        let Record { rank, peer, bytes, .. } = *record;
        let told = format!("{} rank {rank} peer {peer} bytes {bytes}", record.kind.name());
        if record.kind == Kind::Link {
            let (_, link) = all.grid.links.between(&all.grid.topology, rank, peer);
            let arrival = self.x(record.end.saturating_add(link.latency));
            return self
                .canvas
                .edge((from, y(rank)), (arrival, y(peer)), colour(record.level), &told);
        }
        let fill = if record.kind == Kind::Compute {
            "var(--compute)"
        } else {
            colour(record.level)
        };
        let (width, told) = ((to - from).max(0.5), escape(&told));
        self.canvas.add(format_args!(
            r#"<rect x="{from:.2}" y="{:.1}" width="{width:.2}" height="8" fill="{fill}"><title>{told}</title></rect>"#,
            y(rank) - 4.0
        ));
    }

    fn path(&mut self, path: &[Record]) {
        let mut points = Vec::new();
        for (i, record) in path.iter().enumerate() {
            // A link is followed by its receiver, or by those who waited until it was free.
            let received = path
                .get(i + 1)
                .is_some_and(|next| next.kind == Kind::Receive && next.rank == record.peer);
            let to = if record.kind == Kind::Link && received {
                record.peer
            } else {
                record.rank
            };
            points.push(format!("{:.2},{:.1}", self.x(record.begin), y(record.rank)));
            points.push(format!("{:.2},{:.1}", self.x(record.end), y(to)));
        }
        points.dedup();
        self.canvas.polyline("path", &points);
    }
}

fn y(rank: u32) -> f64 {
    TOP + ROW * (f64::from(rank) + 0.5)
}

/// Of the style sheet.
pub(super) fn colour(level: Level) -> &'static str {
    match level {
        Level::WideArea => "var(--wide)",
        Level::LocalArea => "var(--local)",
        Level::Machine => "var(--machine)",
        Level::Vendor => "var(--vendor)",
        Level::Node => "var(--node)",
    }
}

/// Text of the user inside XML. Characters that XML does not allow are left out.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        assert_eq!(escape("a<b>&\u{1}\"c"), "a&lt;b&gt;&amp;&quot;c");
    }

    #[test]
    fn marks_are_round_and_few() {
        for end in [1, 9, 10, 99, 123, 5_000, 77_000_123, u64::MAX] {
            let all: Vec<u64> = marks(end).take(100).collect();
            assert!((2..=11).contains(&all.len()), "{end}: {all:?}");
        }
        assert_eq!(marks(40_000_000).nth(1), Some(5_000_000));
    }
}
