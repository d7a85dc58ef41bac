// SPDX-License-Identifier: Apache-2.0
//! The compiled type map: which bytes of memory make up the packed stream, in order, as nested loops over runs.
//!
//! ```text
//!  Layout  = Run(length)                      `length` bytes
//!          | Strided(count, stride, length)   `count` runs of equal length
//!          | Repeat(count, stride, Nest)      a nest again and again
//!  Nest    = Blocks(offsets, length)          runs of equal length anywhere
//!          | Runs(offsets, starts)            runs of any length
//!          | Sequence(parts)                  layouts at offsets
//! ```
//!
//! Built bottom-up by three functions, [`Placed::run`], [`repeat`] and [`sequence`], which merge what can be merged.
//!
//! **Bounds.** A nest costs memory in proportion to the description it was made from, never to a count. The depth is
//! at most about 64: a repetition at least doubles the size, and [`sequence`] splices in the part that makes up more than
//! half of its bytes, so each remaining level at least halves the size, which is below 2^63. So recursion is safe.

use std::sync::Arc;

use crate::error::{TypeError, narrow};

/// A layout at an offset from the origin.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) offset: i64,
    pub(crate) layout: Layout,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) enum Layout {
    /// Bytes in a row.
    Run { length: u64 },
    /// `count >= 2` runs of `length` bytes, `stride` bytes apart.
    Strided { count: u64, stride: i64, length: u64 },
    /// `count >= 1` times the nest, `stride` bytes apart.
    Repeat { count: u64, stride: i64, nest: Arc<Nest> },
}

/// Several things in order.
#[derive(Debug)]
pub(crate) struct Nest {
    pub(crate) size: u64,
    pub(crate) body: Body,
}

/// See the module.
#[derive(Debug)]
pub(crate) enum Body {
    /// Runs of one length.
    Blocks { offsets: Box<[i64]>, length: u64 },
    /// Runs; run `i` is `starts[i] .. starts[i + 1]` of the stream.
    Runs { offsets: Box<[i64]>, starts: Box<[u64]> },
    /// Anything; each part knows where in the stream it starts.
    Sequence(Box<[Part]>),
}

/// Part of a sequence.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) start: u64,
    pub(crate) placed: Placed,
}

impl Layout {
    /// Bytes of the stream.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Run { length } => *length,
            Self::Strided { count, length, .. } => count * length,
            Self::Repeat { count, nest, .. } => count * nest.size,
        }
    }

    /// The length, if it is a single run.
    fn run(&self) -> Option<u64> {
        match self {
            Self::Run { length } => Some(*length),
            _ => None,
        }
    }

    /// A rough measure of the memory it takes, in runs.
    fn weight(&self) -> usize {
        match self {
            Self::Run { .. } | Self::Strided { .. } => 1,
            Self::Repeat { nest, .. } => match &nest.body {
                Body::Blocks { offsets, .. } | Body::Runs { offsets, .. } => offsets.len(),
                Body::Sequence(parts) => parts.len(),
            },
        }
    }
}

impl Placed {
    /// `length > 0` bytes at the offset.
    pub(crate) fn run(offset: i64, length: u64) -> Self {
        Self { offset, layout: Layout::Run { length } }
    }

    /// The same, `by` bytes further.
    pub(crate) fn shifted(&self, by: i64) -> Result<Self, TypeError> {
        let offset = narrow(i128::from(self.offset) + i128::from(by), "displacement")?;
        Ok(Self { offset, layout: self.layout.clone() })
    }
}

/// `count` times `body`, `stride` bytes apart. `count * size` must fit 63 bits (the caller has checked it).
pub(crate) fn repeat(count: u64, stride: i64, body: &Placed) -> Option<Placed> {
    if count == 0 {
        return None;
    }
    if count == 1 {
        return Some(body.clone());
    }
    let continues = |inner: u64, step: i64| i128::from(inner) * i128::from(step) == i128::from(stride);
    let layout = match &body.layout {
        &Layout::Run { length } if i128::from(length) == i128::from(stride) => Layout::Run { length: length * count },
        &Layout::Run { length } => Layout::Strided { count, stride, length },
        &Layout::Strided { count: inner, stride: step, length } if continues(inner, step) => {
            Layout::Strided { count: count * inner, stride: step, length }
        }
        Layout::Repeat { count: 1, nest, .. } => Layout::Repeat { count, stride, nest: nest.clone() },
        Layout::Repeat { count: inner, stride: step, nest } if continues(*inner, *step) => {
            Layout::Repeat { count: count * inner, stride: *step, nest: nest.clone() }
        }
        inner => {
            let part = Part { start: 0, placed: Placed { offset: 0, layout: inner.clone() } };
            let nest = Nest { size: inner.size(), body: Body::Sequence(Box::new([part])) };
            Layout::Repeat { count, stride, nest: Arc::new(nest) }
        }
    };
    Some(Placed { offset: body.offset, layout })
}

/// Collects the parts of a sequence and makes the tightest layout of them.
#[derive(Default)]
pub(crate) struct Sequencer {
    parts: Vec<Placed>,
}

impl Sequencer {
    /// Appends a layout; adjacent runs become one.
    pub(crate) fn push(&mut self, placed: Placed) {
        if let Some(last) = self.parts.last_mut() {
            if let (Layout::Run { length: before }, Layout::Run { length }) = (&mut last.layout, &placed.layout) {
                if i128::from(last.offset) + i128::from(*before) == i128::from(placed.offset) {
                    *before += length;
                    return;
                }
            }
        }
        self.parts.push(placed);
    }

    /// The layout of everything pushed; `None` if that is nothing. Sizes must add up to less than 2^63.
    pub(crate) fn finish(mut self) -> Result<Option<Placed>, TypeError> {
        self.splice()?;
        match self.parts.len() {
            0 => return Ok(None),
            1 => return Ok(self.parts.pop()),
            _ => {}
        }
        Ok(Some(self.strided().unwrap_or_else(|| self.nest())))
    }

    /// Puts the parts of nested sequences in place of them: of those that make up more than half of the bytes
    /// (that bounds the depth) and of the very small ones (that saves a level and lets runs merge).
    fn splice(&mut self) -> Result<(), TypeError> {
        let total: u64 = self.parts.iter().map(|p| p.layout.size()).sum();
        let wanted = |p: &Placed| match &p.layout {
            Layout::Repeat { count: 1, nest, .. } => nest.size > total / 2 || p.layout.weight() <= 4,
            _ => false,
        };
        if self.parts.len() < 2 || !self.parts.iter().any(wanted) {
            return Ok(());
        }
        let mut flat = Self::default();
        for part in std::mem::take(&mut self.parts) {
            match &part.layout {
                Layout::Repeat { nest, .. } if wanted(&part) => nest.each(part.offset, |p| flat.push(p))?,
                _ => flat.push(part),
            }
        }
        *self = flat;
        Ok(())
    }

    /// Runs of equal length at equal distances are a loop.
    fn strided(&self) -> Option<Placed> {
        let [first, second, ..] = &self.parts[..] else { return None };
        let length = first.layout.run()?;
        let stride = second.offset.checked_sub(first.offset)?;
        let regular = self.parts.windows(2).all(|pair| {
            pair[1].layout.run() == Some(length) && pair[1].offset.checked_sub(pair[0].offset) == Some(stride)
        });
        let count = self.parts.len() as u64;
        regular.then_some(Placed { offset: first.offset, layout: Layout::Strided { count, stride, length } })
    }

    fn nest(self) -> Placed {
        let mut starts = Vec::with_capacity(self.parts.len() + 1);
        let mut size = 0;
        for part in &self.parts {
            starts.push(size);
            size += part.layout.size();
        }
        starts.push(size);
        let runs = self.parts.iter().all(|p| p.layout.run().is_some());
        let equal = self.parts.windows(2).all(|pair| pair[0].layout.run() == pair[1].layout.run());
        let offsets = || self.parts.iter().map(|p| p.offset).collect();
        let body = match (runs, equal) {
            (true, true) => Body::Blocks { offsets: offsets(), length: self.parts[0].layout.size() },
            (true, false) => Body::Runs { offsets: offsets(), starts: starts.into() },
            _ => Body::Sequence(
                self.parts.into_iter().zip(starts).map(|(placed, start)| Part { start, placed }).collect(),
            ),
        };
        Placed { offset: 0, layout: Layout::Repeat { count: 1, stride: 0, nest: Arc::new(Nest { size, body }) } }
    }
}

impl Nest {
    /// Gives each part, moved by `by`.
    fn each(&self, by: i64, mut give: impl FnMut(Placed)) -> Result<(), TypeError> {
        match &self.body {
            Body::Blocks { offsets, length } => {
                for &offset in offsets {
                    give(Placed::run(offset, *length).shifted(by)?);
                }
            }
            Body::Runs { offsets, starts } => {
                for (&offset, bounds) in offsets.iter().zip(starts.windows(2)) {
                    give(Placed::run(offset, bounds[1] - bounds[0]).shifted(by)?);
                }
            }
            Body::Sequence(parts) => {
                for part in parts {
                    give(part.placed.shifted(by)?);
                }
            }
        }
        Ok(())
    }
}
