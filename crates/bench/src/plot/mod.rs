// SPDX-License-Identifier: Apache-2.0
//! Charts and pages of them as HTML: lines drawn by uPlot, bars as tables, in the frame of the room `page`.
//!
//! ```ignore
//! let chart = Lines {
//!     title: "Bcast over three sites".to_owned(),
//!     x: Axis::log("size", Unit::Bytes),
//!     y: Axis::log("time", Unit::Seconds),
//!     series: vec![Series::new("isthmus", points).colour(0)],
//! };
//! Page::new("Experiments").text("What was done.").chart(&chart.html()).table("All of it", &head, &rows).html()
//! ```

mod bars;
mod lines;
mod page;
mod value;

pub(crate) use bars::Bars;
pub(crate) use lines::Lines;
pub(crate) use page::{Page, Promise};

/// Colours of a page: `--c0` to `--c7` of its style.
const COLOURS: usize = 8;

/// What an axis counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Bytes,
    /// Numbers of things.
    Count,
}

impl Unit {
    /// Its name for the script of the page.
    fn name(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Bytes => "bytes",
            Self::Count => "count",
        }
    }
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

    /// Whether a value has a place on it.
    fn has(&self, value: f64) -> bool {
        value.is_finite() && (!self.log || value > 0.0)
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

    /// The colour of the series with this number.
    fn colour_of(&self, number: usize) -> usize {
        self.colour.unwrap_or(number) % COLOURS
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
