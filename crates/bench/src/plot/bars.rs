// SPDX-License-Identifier: Apache-2.0
//! Bar charts, the bars to the right.

use super::scale::{Scale, told};
use super::svg::{Canvas, LETTER, WIDTH};
use super::{Axis, Series};
use crate::samples::Spread;

const BAR: f64 = 14.0;
const BETWEEN: f64 = 12.0;

/// Groups of bars, one bar of each series; a series may lack values.
#[derive(Clone, Debug)]
pub(crate) struct Bars {
    pub(crate) title: String,
    /// Names of the groups, from above.
    pub(crate) groups: Vec<String>,
    pub(crate) axis: Axis,
    /// A value for each group.
    pub(crate) series: Vec<Series<Option<Spread>>>,
}

impl Bars {
    /// The chart as one SVG document, which may also stand inside HTML.
    pub(crate) fn svg(&self) -> String {
        let longest = self.groups.iter().map(|g| g.chars().count()).max().unwrap_or(0);
        let left = (30.0 + LETTER * longest as f64).clamp(80.0, WIDTH / 2.0);
        let group = BAR * self.series.len() as f64 + BETWEEN;
        let field = group * self.groups.len() as f64 + BETWEEN;
        let legend = Canvas::legend_height(&self.series);
        let mut canvas = Canvas::new(&self.title, 50.0 + legend + field + 50.0);
        let head = canvas.legend(56.0, &self.series, |canvas, number, (x, y)| {
            self.bar(canvas, number, (x - 8.0, y - 5.0), 18.0, "");
        });
        let values = self.series.iter().flat_map(|s| s.values.iter().flatten());
        let scale = Scale::of(&self.axis, values.flat_map(|v| [v.min, v.max]));
        let top = 50.0 + head;
        canvas.across(&self.axis, &scale, left, (top, top + field));
        for (place, name) in self.groups.iter().enumerate() {
            let y = top + BETWEEN + group * place as f64;
            canvas.text("", "end", (left - 8.0, y + (group - BETWEEN) / 2.0 + 4.0), name);
            for number in 0..self.series.len() {
                self.value(&mut canvas, &scale, (number, place), (left, y + BAR * number as f64));
            }
        }
        canvas.line("axis", (left, top), (left, top + field));
        canvas.finish()
    }

    fn value(&self, canvas: &mut Canvas, scale: &Scale, (number, place): (usize, usize), (left, y): (f64, f64)) {
        let series = &self.series[number];
        let Some(Some(spread)) = series.values.get(place).copied() else {
            return;
        };
        if !scale.has(spread.median) {
            return;
        }
        let x = |value: f64| left + (WIDTH - left - 30.0) * scale.part(value);
        let value = told(spread.median, self.axis.unit);
        let title = format!("{}, {}: {value}", self.groups[place], series.name);
        self.bar(canvas, number, (left, y), x(spread.median) - left, &title);
        if spread.min < spread.max && scale.has(spread.min) {
            let middle = y + BAR / 2.0 - 1.0;
            canvas.line("axis", (x(spread.min), middle), (x(spread.max), middle));
        }
        let end = x(spread.max) + 5.0;
        // Inside where there is no room to the right.
        let (anchor, at) = if end + LETTER * value.chars().count() as f64 > WIDTH {
            ("end", x(spread.min) - 5.0)
        } else {
            ("start", end)
        };
        canvas.add(format_args!(
            r#"<text font-size="11" text-anchor="{anchor}" x="{at:.1}" y="{:.1}">{value}</text>"#,
            y + BAR - 3.5
        ));
    }

    fn bar(&self, canvas: &mut Canvas, number: usize, (x, y): (f64, f64), width: f64, title: &str) {
        let series = &self.series[number];
        let paint = series.paint(number);
        let fill = if series.hollow { "var(--paper)" } else { &paint };
        let title = super::svg::escape(title);
        canvas.add(format_args!(
            r#"<rect x="{x:.1}" y="{y:.1}" width="{:.1}" height="{:.1}" fill="{fill}" stroke="{paint}" stroke-width="1.2"><title>{title}</title></rect>"#,
            width.max(1.0),
            BAR - 3.0
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::super::Unit;
    use super::*;

    #[test]
    fn every_value_has_a_bar() {
        let value = |v| {
            Some(Spread {
                median: v,
                min: v,
                max: v,
            })
        };
        let chart = Bars {
            title: "t".to_owned(),
            groups: vec!["barrier".to_owned(), "bcast".to_owned()],
            axis: Axis::linear("time", Unit::Seconds),
            series: vec![
                Series::new("measured", vec![value(0.04), value(0.02)]),
                Series::new("computed", vec![value(0.041), None]).hollow(),
            ],
        };
        let svg = chart.svg();
        // Paper, two in the legend, three values.
        assert_eq!(svg.matches("<rect").count(), 6);
        assert!(svg.contains("barrier, computed: 41 ms"), "{svg}");
    }
}
