// SPDX-License-Identifier: Apache-2.0
//! Lower and upper bounds: MPI 5.0, sections 5.1.6 to 5.1.8.

use crate::error::{TypeError, narrow};

/// Size and bounds of a datatype, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) size: u64,
    pub(crate) lower: i64,
    pub(crate) upper: i64,
    pub(crate) true_lower: i64,
    pub(crate) true_upper: i64,
    /// Set by MPI_Type_create_resized here or in a part: wins over the bounds of the data.
    pub(crate) marked_lower: bool,
    pub(crate) marked_upper: bool,
    /// What a C compiler would align the type to.
    pub(crate) alignment: u64,
}

impl Bounds {
    /// Upper minus lower bound.
    pub(crate) fn extent(&self) -> i64 {
        self.upper - self.lower
    }

    fn populated(&self) -> bool {
        self.size > 0 || self.marked_lower || self.marked_upper
    }
}

/// Smallest and largest of what was seen.
#[derive(Clone, Copy, Default)]
struct Span(Option<(i128, i128)>);

impl Span {
    fn add(&mut self, low: i128, high: i128) {
        let (l, h) = self.0.unwrap_or((low, high));
        self.0 = Some((l.min(low), h.max(high)));
    }

    fn low(self) -> Option<i128> {
        self.0.map(|s| s.0)
    }

    fn high(self) -> Option<i128> {
        self.0.map(|s| s.1)
    }
}

/// Gathers the bounds of a datatype from its blocks.
#[derive(Default)]
pub(crate) struct Gatherer {
    data: Span,
    touched: Span,
    marked_low: Span,
    marked_high: Span,
    size: i128,
    alignment: u64,
}

impl Gatherer {
    /// `length` consecutive elements with these bounds at `displacement`.
    pub(crate) fn block(&mut self, displacement: i64, length: u64, of: &Bounds) -> Result<(), TypeError> {
        if length == 0 || !of.populated() {
            return Ok(());
        }
        let span = i128::from(length - 1) * i128::from(of.extent());
        let (first, last) = (
            i128::from(displacement) + span.min(0),
            i128::from(displacement) + span.max(0),
        );
        let (lower, upper) = (first + i128::from(of.lower), last + i128::from(of.upper));
        self.data.add(lower, upper);
        if of.marked_lower {
            self.marked_low.add(lower, lower);
        }
        if of.marked_upper {
            self.marked_high.add(upper, upper);
        }
        if of.size > 0 {
            self.touched
                .add(first + i128::from(of.true_lower), last + i128::from(of.true_upper));
        }
        self.size += i128::from(narrow(i128::from(length) * i128::from(of.size), "size")?);
        self.alignment = self.alignment.max(of.alignment);
        Ok(())
    }

    /// The bounds. `padded`: round the extent up to the alignment, as C does for structures; never if marked.
    pub(crate) fn finish(self, padded: bool) -> Result<Bounds, TypeError> {
        let marked_low = self.marked_low.low();
        let marked_high = self.marked_high.high();
        let lower = marked_low.or_else(|| self.data.low()).unwrap_or(0);
        let mut upper = marked_high.or_else(|| self.data.high()).unwrap_or(0);
        let alignment = self.alignment.max(1);
        if padded && marked_high.is_none() {
            upper += (lower - upper).rem_euclid(i128::from(alignment));
        }
        narrow(upper - lower, "extent")?;
        let (true_lower, true_upper) = self.touched.0.unwrap_or((0, 0));
        narrow(true_upper - true_lower, "true extent")?;
        Ok(Bounds {
            size: narrow(self.size, "size")? as u64,
            lower: narrow(lower, "lower bound")?,
            upper: narrow(upper, "upper bound")?,
            true_lower: narrow(true_lower, "true lower bound")?,
            true_upper: narrow(true_upper, "true upper bound")?,
            marked_lower: marked_low.is_some(),
            marked_upper: marked_high.is_some(),
            alignment,
        })
    }
}
