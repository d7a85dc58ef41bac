// SPDX-License-Identifier: Apache-2.0
//! A simulation of many processes as a drawing: how many are done when, when each site is done, and the critical path
//! from site to site.

use super::report::time;
use super::simulated::Simulated;
use super::svg::{self, Canvas};
use isthmus_simulate::Kind;
use isthmus_wire::word::counted;
use std::collections::BTreeMap;

/// Rows for sites; where there are more sites, several share a row.
const ROWS: usize = 60;
const LEFT: f64 = 190.0;
const WIDTH: f64 = 960.0;
const CURVE: f64 = 150.0;
const TOP: f64 = 90.0;
const ROW: f64 = 13.0;

/// Sites that are drawn as one row.
struct Row {
    name: String,
    /// When their processes are done, ascending.
    done: Vec<u64>,
}

/// The drawing, one SVG document.
pub(super) fn draw(all: &Simulated) -> String {
    let (rows, row_of_site) = rows(all);
    let bottom = TOP + CURVE + 50.0 + ROW * rows.len() as f64;
    let mut canvas = Canvas::new(&title(all), LEFT + WIDTH + 30.0, bottom + 40.0);
    let end = all.outcome.time().max(1);
    let x = |time: u64| LEFT + WIDTH * time as f64 / end as f64;
    axis(&mut canvas, end, (TOP, bottom), &x);
    curve(&mut canvas, all, &x);
    let y = |row: usize| TOP + CURVE + 45.0 + ROW * row as f64;
    canvas.text(
        "soft",
        "start",
        (10.0, y(0) - 16.0),
        "sites, in order of when they are done: first to last process, half of them",
    );
    for (number, row) in rows.iter().enumerate() {
        let (first, middle, last) = (row.done[0], row.done[row.done.len() / 2], row.done[row.done.len() - 1]);
        let top = y(number) - 4.0;
        canvas.text("small", "end", (LEFT - 8.0, y(number) + 4.0), &row.name);
        let told = format!(
            "{}: {}, first {}, half {}, last {}",
            row.name,
            counted(row.done.len(), "process"),
            time(first),
            time(middle),
            time(last)
        );
        canvas.bar("span", (x(first), top), ((x(last) - x(first)).max(1.5), 8.0), &told);
        canvas.line("half", (x(middle), top - 1.0), (x(middle), top + 9.0));
    }
    path(
        &mut canvas,
        all,
        &|rank| y(row_of_site[all.grid.topology.clusters_of(rank)[0] as usize]),
        &x,
    );
    canvas.finish()
}

fn title(all: &Simulated) -> String {
    format!(
        "{} of {}, {} on {}: {}",
        all.asked.name,
        all.asked.size,
        counted(all.outcome.finished.len(), "process"),
        counted(all.grid.sites.len(), "site"),
        time(all.outcome.time())
    )
}

/// Rows in order of completion, and the row of each site.
fn rows(all: &Simulated) -> (Vec<Row>, Vec<usize>) {
    let mut done: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for (rank, &at) in (0..).zip(&all.outcome.finished) {
        let site = all.grid.topology.clusters_of(rank)[0] as usize;
        done.entry(site).or_default().push(at);
    }
    let mut order: Vec<(usize, Vec<u64>)> = done.into_iter().collect();
    order.sort_by_key(|(site, times)| (times.iter().copied().max(), *site));
    let together = order.len().div_ceil(ROWS).max(1);
    let mut row_of_site = vec![0; all.grid.sites.len()];
    let mut rows = Vec::new();
    for part in order.chunks(together) {
        let (first, more) = (part[0].0, part.len() - 1);
        let mut done: Vec<u64> = part.iter().flat_map(|(_, times)| times.iter().copied()).collect();
        done.sort_unstable();
        part.iter().for_each(|(site, _)| row_of_site[*site] = rows.len());
        let name = match more {
            0 => all.grid.sites[first].clone(),
            _ => format!("{} and {more} more", all.grid.sites[first]),
        };
        rows.push(Row { name, done });
    }
    (rows, row_of_site)
}

fn axis(canvas: &mut Canvas, end: u64, (top, bottom): (f64, f64), x: &dyn Fn(u64) -> f64) {
    for mark in svg::marks(end) {
        canvas.line("grid", (x(mark), top), (x(mark), bottom));
        canvas.text("soft", "middle", (x(mark), bottom + 16.0), &time(mark));
    }
}

/// How many processes are done at a time.
fn curve(canvas: &mut Canvas, all: &Simulated, x: &dyn Fn(u64) -> f64) {
    let mut done = all.outcome.finished.clone();
    done.sort_unstable();
    let y = |part: f64| TOP + CURVE * (1.0 - part);
    for part in [0.0, 0.5, 1.0] {
        canvas.line("grid", (LEFT, y(part)), (LEFT + WIDTH, y(part)));
        canvas.text(
            "soft",
            "end",
            (LEFT - 8.0, y(part) + 4.0),
            &format!("{:.0} % done", part * 100.0),
        );
    }
    let steps = done.len().min(400);
    let mut points = vec![format!("{:.1},{:.1}", x(0), y(0.0))];
    for step in 1..=steps {
        let count = done.len() * step / steps;
        points.push(format!(
            "{:.1},{:.1}",
            x(done[count - 1]),
            y(count as f64 / done.len() as f64)
        ));
    }
    canvas.polyline("curve", &points);
}

/// The critical path, from row to row.
fn path(canvas: &mut Canvas, all: &Simulated, y: &dyn Fn(u32) -> f64, x: &dyn Fn(u64) -> f64) {
    let path = all.outcome.critical_path();
    let mut points = Vec::new();
    for (i, record) in path.iter().enumerate() {
        let next = path.get(i + 1);
        let arrives = record.kind == Kind::Link
            && next.is_some_and(|next| next.kind == Kind::Receive && next.rank == record.peer);
        points.push(format!("{:.1},{:.1}", x(record.begin), y(record.rank)));
        let to = if arrives { record.peer } else { record.rank };
        points.push(format!("{:.1},{:.1}", x(record.end), y(to)));
    }
    points.dedup();
    canvas.polyline("path", &points);
}
