// SPDX-License-Identifier: Apache-2.0
//! Charts as SVG and pages of them as HTML: nothing from the network, readable in light and dark.
//!
//! ```ignore
//! let chart = Lines {
//!     title: "Bcast over three sites".to_owned(),
//!     x: Axis::log("size", Unit::Bytes),
//!     y: Axis::log("time", Unit::Seconds),
//!     series: vec![Series::new("isthmus", points).colour(0)],
//! };
//! Page::new("Experiments").text("What was done.").chart(&chart.svg()).table("All of it", &head, &rows).html()
//! ```
//!
//! Colours differ in lightness as well as in hue, and every series of a line chart has a marker of its own.

mod bars;
mod lines;
mod page;
mod scale;
mod svg;

pub(crate) use bars::Bars;
pub(crate) use lines::Lines;
pub(crate) use page::{Kept, Page};

/// What an axis counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Bytes,
    #[cfg_attr(not(test), expect(dead_code, reason = "the charts of rates to come"))]
    BytesPerSecond,
    /// Numbers of things.
    Count,
    /// A quotient: `1.5 x`.
    #[cfg_attr(not(test), expect(dead_code, reason = "the charts of ratios to come"))]
    Ratio,
}

/// An axis.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    label: String,
    unit: Unit,
    log: bool,
}

impl Axis {
    /// In proportion, from 0.
    pub(crate) fn linear(label: &str, unit: Unit) -> Self {
        Self {
            label: label.to_owned(),
            unit,
            log: false,
        }
    }

    /// Logarithmic. Values that are not above 0 are left out.
    pub(crate) fn log(label: &str, unit: Unit) -> Self {
        Self {
            log: true,
            ..Self::linear(label, unit)
        }
    }
}

/// A named row of values: points of a line, bars of one colour.
#[derive(Clone, Debug)]
pub(crate) struct Series<T> {
    name: String,
    values: Vec<T>,
    colour: Option<usize>,
    hollow: bool,
}

impl<T> Series<T> {
    /// In the colour of its place.
    pub(crate) fn new(name: &str, values: Vec<T>) -> Self {
        Self {
            name: name.to_owned(),
            values,
            colour: None,
            hollow: false,
        }
    }

    /// In this colour (0 to 7): series that belong together share one.
    pub(crate) fn colour(self, colour: usize) -> Self {
        Self {
            colour: Some(colour),
            ..self
        }
    }

    /// Dashed with hollow markers, or hollow bars: what is computed rather than measured.
    pub(crate) fn hollow(self) -> Self {
        Self { hollow: true, ..self }
    }
}
