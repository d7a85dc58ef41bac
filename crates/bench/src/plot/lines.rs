// SPDX-License-Identifier: Apache-2.0
//! Line charts.

use super::scale::{Scale, told};
use super::svg::{Canvas, WIDTH};
use super::{Axis, Series};
use crate::samples::Spread;

const LEFT: f64 = 80.0;
const FIELD: f64 = 330.0;

/// Lines through points (x, y with its spread).
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series<(f64, Spread)>>,
}

/// Where things are.
struct Field {
    x: Scale,
    y: Scale,
    top: f64,
}

impl Field {
    fn place(&self, x: f64, y: f64) -> (f64, f64) {
        (
            LEFT + (WIDTH - LEFT - 30.0) * self.x.part(x),
            self.top + FIELD * (1.0 - self.y.part(y)),
        )
    }
}

impl Lines {
    /// The chart as one SVG document, which may also stand inside HTML.
    pub(crate) fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|s| &s.values);
        let mut canvas = Canvas::new(&self.title, 64.0 + Canvas::legend_height(&self.series) + FIELD + 50.0);
        let head = canvas.legend(56.0, &self.series, |canvas, number, at| {
            marker(canvas, number, &self.series[number], at, "");
        });
        let field = Field {
            x: Scale::of(&self.x, points().map(|p| p.0)),
            y: Scale::of(&self.y, points().flat_map(|p| [p.1.min, p.1.max])),
            top: 56.0 + head + 8.0,
        };
        self.axes(&mut canvas, &field);
        for (number, series) in self.series.iter().enumerate() {
            self.draw(&mut canvas, &field, number, series);
        }
        canvas.finish()
    }

    fn axes(&self, canvas: &mut Canvas, field: &Field) {
        let (top, bottom) = (field.top, field.top + FIELD);
        canvas.across(&self.x, &field.x, LEFT, (top, bottom));
        for mark in field.y.marks() {
            let y = top + FIELD * (1.0 - field.y.part(mark));
            canvas.line("grid", (LEFT, y), (WIDTH - 30.0, y));
            canvas.text("soft", "end", (LEFT - 8.0, y + 4.0), &told(mark, self.y.unit));
        }
        let kind = if self.y.log { " (logarithmic)" } else { "" };
        canvas.text("soft", "start", (16.0, top - 10.0), &format!("{}{kind}", self.y.label));
        canvas.line("axis", (LEFT, bottom), (WIDTH - 30.0, bottom));
        canvas.line("axis", (LEFT, top), (LEFT, bottom));
    }

    fn draw(&self, canvas: &mut Canvas, field: &Field, number: usize, series: &Series<(f64, Spread)>) {
        let usable = |p: &&(f64, Spread)| field.x.has(p.0) && field.y.has(p.1.median);
        let points: Vec<&(f64, Spread)> = series.values.iter().filter(usable).collect();
        let places: Vec<(f64, f64)> = points.iter().map(|p| field.place(p.0, p.1.median)).collect();
        let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let (paint, dash) = (series.paint(number), if series.hollow { "6 4" } else { "none" });
        canvas.add(format_args!(
            r#"<polyline fill="none" stroke="{paint}" stroke-width="2" stroke-dasharray="{dash}" points="{}"/>"#,
            path.join(" ")
        ));
        for (point, &(x, y)) in points.iter().zip(&places) {
            let Spread { median, min, max } = point.1;
            if min < max && field.y.has(min) {
                let (low, high) = (field.place(point.0, min).1, field.place(point.0, max).1);
                canvas.add(format_args!(
                    r#"<line stroke="{paint}" x1="{x:.1}" y1="{low:.1}" x2="{x:.1}" y2="{high:.1}"/>"#
                ));
            }
            let (at, value) = (told(point.0, self.x.unit), told(median, self.y.unit));
            marker(
                canvas,
                number,
                series,
                (x, y),
                &format!("{}, {at}: {value}", series.name),
            );
        }
    }
}

/// A mark in the form and colour of a series.
fn marker<T>(canvas: &mut Canvas, number: usize, series: &Series<T>, (x, y): (f64, f64), title: &str) {
    let paint = series.paint(number);
    let fill = if series.hollow { "var(--paper)" } else { &paint };
    let title = super::svg::escape(title);
    let form = match series.colour.unwrap_or(number) % 4 {
        0 => format!(r#"circle cx="{x:.1}" cy="{y:.1}" r="4.5""#),
        1 => format!(r#"rect x="{:.1}" y="{:.1}" width="8" height="8""#, x - 4.0, y - 4.0),
        2 => format!(r#"path d="M{x:.1} {:.1}l5.5 9h-11z""#, y - 5.5),
        _ => format!(r#"path d="M{x:.1} {:.1}l5.5 5.5l-5.5 5.5l-5.5 -5.5z""#, y - 5.5),
    };
    let element = form.split(' ').next().unwrap_or_default();
    canvas.add(format_args!(
        r#"<{form} fill="{fill}" stroke="{paint}" stroke-width="1.5"><title>{title}</title></{element}>"#
    ));
}

#[cfg(test)]
mod tests {
    use super::super::Unit;
    use super::*;

    #[test]
    fn points_are_drawn_and_those_without_a_place_are_not() {
        let at = |x, y| {
            (
                x,
                Spread {
                    median: y,
                    min: y * 0.9,
                    max: y * 1.1,
                },
            )
        };
        let chart = Lines {
            title: "a<b".to_owned(),
            x: Axis::log("size", Unit::Bytes),
            y: Axis::log("time", Unit::Seconds),
            series: vec![
                Series::new("measured", vec![at(8.0, 0.02), at(1e6, 0.2), at(0.0, 1.0)]),
                Series::new("computed", vec![at(8.0, 0.02)]).colour(0).hollow(),
            ],
        };
        let svg = chart.svg();
        // Two marks in the legend, two points, one point.
        assert_eq!(svg.matches("<circle").count(), 5);
        assert!(
            svg.contains("a&lt;b") && svg.contains("measured, 977 KiB: 200 ms"),
            "{svg}"
        );
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }
}
