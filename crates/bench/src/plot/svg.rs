// SPDX-License-Identifier: Apache-2.0
//! What all charts are made of.

use super::scale::{Scale, told};
use super::{Axis, Series};
use std::fmt::Write as _;

pub(super) const WIDTH: f64 = 860.0;
/// Distance of text lines.
pub(super) const LINE: f64 = 20.0;
/// Width of a letter, about.
pub(super) const LETTER: f64 = 6.6;
const COLOURS: usize = 8;

/// Okabe and Ito's colours, which most people with deficient colour vision tell apart; darker on light, lighter on
/// dark.
const STYLE: &str = "<style>\
.plot{--c0:#0067a8;--c1:#c14a00;--c2:#00805c;--c3:#a8467f;--c4:#946600;--c5:#2b8cbe;--c6:#6a3fa0;--c7:#555;\
--ink:#1a1a1a;--soft:#606060;--grid:#e2e2e2;--paper:#ffffff;\
font:13px system-ui,sans-serif;max-width:100%;height:auto}\
@media(prefers-color-scheme:dark){.plot{--c0:#5db8ef;--c1:#ff8f4d;--c2:#2fd0a0;--c3:#ef9fcb;--c4:#e6b422;--c5:#9bd4f5;--c6:#b79cf0;--c7:#bbb;\
--ink:#ececec;--soft:#a8a8a8;--grid:#3a3a3a;--paper:#161616}}\
.plot text{fill:var(--ink)}.plot .soft{fill:var(--soft)}.plot .title{font-size:16px;font-weight:600}\
.plot .grid{stroke:var(--grid)}.plot .axis{stroke:var(--soft)}.plot .paper{fill:var(--paper)}</style>";

/// A drawing under way.
pub(super) struct Canvas {
    text: String,
}

impl Canvas {
    pub(super) fn new(title: &str, height: f64) -> Self {
        let mut canvas = Self { text: String::new() };
        let name = escape(title);
        canvas.add(format_args!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" class="plot" role="img" aria-label="{name}" viewBox="0 0 {WIDTH} {height:.0}" width="{WIDTH}" height="{height:.0}">{STYLE}"#
        ));
        canvas.add(format_args!(r#"<rect class="paper" width="100%" height="100%"/>"#));
        canvas.add(format_args!(r#"<text class="title" x="16" y="28">{name}</text>"#));
        canvas
    }

    pub(super) fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{element}");
    }

    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }

    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.add(format_args!(
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        ));
    }

    pub(super) fn text(&mut self, class: &str, anchor: &str, (x, y): (f64, f64), text: &str) {
        let text = escape(text);
        self.add(format_args!(
            r#"<text class="{class}" text-anchor="{anchor}" x="{x:.1}" y="{y:.1}">{text}</text>"#
        ));
    }

    /// The height that the names of the series take.
    pub(super) fn legend_height<T>(series: &[Series<T>]) -> f64 {
        let last = Self::legend_places(series).last().map_or(0.0, |(_, y)| *y);
        last + LINE
    }

    /// Where the names stand, below the first line.
    fn legend_places<T>(series: &[Series<T>]) -> Vec<(f64, f64)> {
        let (mut x, mut y) = (16.0, 0.0);
        let place = |one: &Series<T>| {
            let width = 44.0 + LETTER * one.name.chars().count() as f64;
            if x + width > WIDTH && x > 16.0 {
                (x, y) = (16.0, y + LINE);
            }
            x += width;
            (x - width, y)
        };
        series.iter().map(place).collect()
    }

    /// Names of the series, each behind what `sample` draws at its place. Gives the height that they take.
    pub(super) fn legend<T>(
        &mut self,
        top: f64,
        series: &[Series<T>],
        mut sample: impl FnMut(&mut Self, usize, (f64, f64)),
    ) -> f64 {
        for (number, (one, (x, y))) in series.iter().zip(Self::legend_places(series)).enumerate() {
            sample(self, number, (x + 12.0, top + y - 4.0));
            self.text("", "start", (x + 28.0, top + y), &one.name);
        }
        Self::legend_height(series)
    }

    /// An axis along the lower edge: marks, values, lines through the field.
    pub(super) fn across(&mut self, axis: &Axis, scale: &Scale, left: f64, (top, bottom): (f64, f64)) {
        let width = WIDTH - left - 30.0;
        for mark in scale.marks() {
            let x = left + width * scale.part(mark);
            self.line("grid", (x, top), (x, bottom));
            self.text("soft", "middle", (x, bottom + 17.0), &told(mark, axis.unit));
        }
        let kind = if axis.log { " (logarithmic)" } else { "" };
        self.text(
            "soft",
            "middle",
            (left + width / 2.0, bottom + 37.0),
            &format!("{}{kind}", axis.label),
        );
    }
}

impl<T> Series<T> {
    /// Its colour as a name that the style sheet has.
    pub(super) fn paint(&self, place: usize) -> String {
        format!("var(--c{})", self.colour.unwrap_or(place) % COLOURS)
    }
}

/// Text inside XML. Characters that XML does not allow are left out.
pub(super) fn escape(text: &str) -> String {
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
