// SPDX-License-Identifier: Apache-2.0
//! A simulation as a drawing: one line per rank, time to the right, messages as arrows, the critical path on top.

use super::Simulated;
use isthmus_job::JobError;
use isthmus_schedule::simulate::{Kind, Record};
use isthmus_topology::Level;
use std::fmt::Write;

/// Most ranks of a drawing.
const RANKS: usize = 512;
/// Most records of a drawing.
const RECORDS: usize = 100_000;
const LEFT: f64 = 150.0;
const TOP: f64 = 60.0;
const WIDTH: f64 = 1000.0;
const ROW: f64 = 16.0;

/// The drawing, one SVG document.
pub(super) fn draw(all: &Simulated) -> Result<String, JobError> {
    let (ranks, records) = (all.outcome.finished.len(), all.outcome.records.len());
    if ranks > RANKS || records > RECORDS || all.outcome.records_dropped {
        let error = JobError::new(format!(
            "--svg: {ranks} processes and {records} events are too many to draw"
        ));
        return Err(error.hint(format!(
            "draw at most {RANKS} processes and {RECORDS} events: a smaller grid or size"
        )));
    }
    let mut canvas = Canvas {
        text: String::new(),
        scale: WIDTH / all.outcome.time().max(1) as f64,
    };
    canvas.head(all);
    canvas.rows(all);
    for record in &all.outcome.records {
        canvas.record(all, record);
    }
    canvas.path(&all.outcome.critical_path());
    canvas.text.push_str("</svg>\n");
    Ok(canvas.text)
}

struct Canvas {
    text: String,
    /// Units of the drawing per nanosecond.
    scale: f64,
}

impl Canvas {
    fn add(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{line}");
    }

    fn x(&self, time: u64) -> f64 {
        LEFT + time as f64 * self.scale
    }

    fn head(&mut self, all: &Simulated) {
        let (width, height) = (
            LEFT + WIDTH + 20.0,
            TOP + ROW * all.outcome.finished.len() as f64 + 20.0,
        );
        self.add(format_args!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="sans-serif" font-size="11">"#
        ));
        self.add(format_args!(r#"<rect width="100%" height="100%" fill="white"/>"#));
        let bytes = all.call.blocks.size(0) * all.call.unit_bytes;
        let milliseconds = all.outcome.time() as f64 / 1e6;
        self.add(format_args!(
            r#"<text x="10" y="20" font-size="14">{} of {bytes} bytes: {milliseconds:.3} ms</text>"#,
            all.name
        ));
        for (i, level) in Level::ALL.into_iter().enumerate() {
            let x = 10 + 110 * i;
            self.add(format_args!(
                r#"<text x="{x}" y="40" fill="{}">{level}</text>"#,
                colour(level)
            ));
        }
        self.add(format_args!(
            r#"<text x="{}" y="40" fill="crimson">critical path</text>"#,
            10 + 110 * Level::COUNT
        ));
    }

    fn rows(&mut self, all: &Simulated) {
        for rank in 0..all.outcome.finished.len() as u32 {
            let site = all.grid.topology.clusters_of(rank)[0];
            let name = escape(&all.grid.sites[site as usize]);
            let (y, right) = (y(rank), self.x(all.outcome.finished[rank as usize]));
            self.add(format_args!(
                r##"<text x="{}" y="{}" text-anchor="end">{rank} {name}</text><line x1="{LEFT}" y1="{y}" x2="{right:.2}" y2="{y}" stroke="#ccc"/>"##,
                LEFT - 8.0,
                y + 4.0
            ));
        }
    }

    fn record(&mut self, all: &Simulated, record: &Record) {
        let (from, to) = (self.x(record.begin), self.x(record.end));
        let colour = colour(record.level);
        if record.kind == Kind::Link {
            let (_, link) = all.grid.links.between(&all.grid.topology, record.rank, record.peer);
            let arrival = self.x(record.end.saturating_add(link.latency));
            return self.line(from, record.rank, arrival, record.peer, colour, 1.0);
        }
        let fill = if record.kind == Kind::Compute { "#888" } else { colour };
        self.add(format_args!(
            r#"<rect x="{from:.2}" y="{:.1}" width="{:.2}" height="8" fill="{fill}"><title>{} rank {} peer {} bytes {}</title></rect>"#,
            y(record.rank) - 4.0,
            (to - from).max(0.5),
            record.kind.name(),
            record.rank,
            record.peer,
            record.bytes
        ));
    }

    fn path(&mut self, path: &[Record]) {
        for (i, record) in path.iter().enumerate() {
            // A link is followed by its receiver, or by those who waited until it was free.
            let received = path
                .get(i + 1)
                .is_some_and(|next| next.kind == Kind::Receive && next.rank == record.peer);
            let crosses = record.kind == Kind::Link && received;
            let to = if crosses { record.peer } else { record.rank };
            let (from, end) = (self.x(record.begin), self.x(record.end));
            self.line(from, record.rank, end, to, "crimson", 2.5);
        }
    }

    fn line(&mut self, from: f64, rank: u32, to: f64, peer: u32, colour: &str, width: f64) {
        self.add(format_args!(
            r#"<line x1="{from:.2}" y1="{}" x2="{to:.2}" y2="{}" stroke="{colour}" stroke-width="{width}"/>"#,
            y(rank),
            y(peer)
        ));
    }
}

fn y(rank: u32) -> f64 {
    TOP + ROW * (f64::from(rank) + 0.5)
}

fn colour(level: Level) -> &'static str {
    match level {
        Level::WideArea => "#d95f02",
        Level::LocalArea => "#7570b3",
        Level::Machine => "#1b9e77",
        Level::Vendor => "#66a61e",
        Level::Node => "#3a7ab5",
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
        assert_eq!(escape("a<b>&\u{1}c"), "a&lt;b&gt;&amp;c");
    }
}
