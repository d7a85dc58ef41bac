// SPDX-License-Identifier: Apache-2.0
//! The compiled type map: which bytes of memory make up the packed stream, in order, as nested loops over runs.
//!
//! ```text
//!  Layout  = Run(length)                      `length` bytes
//!          | Strided(count, stride, length)   `count` runs of equal length
//!          | Repeat(count, stride, Nest)      a nest again and again
//!  Nest    = Rows(offsets, lengths)           runs anywhere, of one length or of many
//!          | Sequence(parts)                  layouts at offsets
//! ```
//!
//! Built bottom-up by three functions, [`Placed::run`], [`repeat`] and [`sequence`], which merge what can be merged.
//!
//! Nests of a few runs are written out as rows, however they were described: a repetition of such a nest is moved
//! column by column, with the loop over the repetition inside.
//!
//! **Bounds.** A nest costs memory in proportion to the description it was made from, never to a count. The depth is
//! at most about 64: a repetition at least doubles the size, and [`sequence`] splices in the part that makes up more
//! than half of its bytes, so each remaining level at least halves the size, which is below 2^63. So recursion is safe.

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
    /// Number of runs; saturates.
    runs: u64,
    /// Bytes of memory that it touches, from the origin.
    span: (i64, i64),
    pub(crate) body: Body,
}

/// See the module.
#[derive(Debug)]
pub(crate) enum Body {
    /// Runs.
    Rows(Rows),
    /// Anything; each part knows where in the stream it starts.
    Sequence(Box<[SequencePart]>),
}

/// Runs at offsets, one after the other in the stream.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) offsets: Box<[i64]>,
    pub(crate) lengths: Lengths,
    /// The distance between neighbours, if there is only one and they have one length.
    pub(crate) step: Option<i64>,
    /// Bytes of memory that all of them touch, from the origin.
    pub(crate) span: (i64, i64),
}

/// Lengths of runs.
#[derive(Debug)]
pub(crate) enum Lengths {
    /// All have this one.
    Equal(u64),
    /// Run `i` is `starts[i] .. starts[i + 1]` of the stream.
    Various(Box<[u64]>),
}

impl Rows {
    /// Where in the stream run `i` starts; with the number of runs: where the last one ends.
    #[inline]
    pub(crate) fn start(&self, i: usize) -> u64 {
        match &self.lengths {
            Lengths::Equal(length) => length * i as u64,
            Lengths::Various(starts) => starts[i],
        }
    }

    /// The run with this byte of the stream.
    pub(crate) fn find(&self, byte: u64) -> usize {
        match &self.lengths {
            Lengths::Equal(length) => (byte / length) as usize,
            Lengths::Various(starts) => starts.partition_point(|&start| start <= byte) - 1,
        }
    }
}

/// Nests of at most this many runs are written out. Enough for the structures and small blocks that programs have, few
/// enough to cost no memory to speak of.
pub(crate) const FEW: u64 = 32;

/// Part of a sequence.
#[derive(Clone, Debug)]
pub(crate) struct SequencePart {
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

    /// Number of runs; saturates.
    fn runs(&self) -> u64 {
        match self {
            Self::Run { .. } => 1,
            Self::Strided { count, .. } => *count,
            Self::Repeat { count, nest, .. } => count.saturating_mul(nest.runs),
        }
    }

    /// Bytes of memory that it touches, from the origin. (Saturates for types whose window does not fit: they are
    /// refused later.)
    fn span(&self) -> (i64, i64) {
        let times = |(low, high): (i64, i64), count: u64, stride: i64| {
            let last = i64::try_from(count - 1).unwrap_or(i64::MAX).saturating_mul(stride);
            (low.saturating_add(last.min(0)), high.saturating_add(last.max(0)))
        };
        match self {
            Self::Run { length } => (0, *length as i64),
            Self::Strided { count, stride, length } => times((0, *length as i64), *count, *stride),
            Self::Repeat { count, stride, nest } => times(nest.span, *count, *stride),
        }
    }

    /// Writes its runs out, for those of few.
    fn each(&self, at: i64, give: &mut dyn FnMut(Placed)) -> Result<(), TypeError> {
        let times = |i: u64, stride: i64| narrow(i128::from(at) + i128::from(i) * i128::from(stride), "displacement");
        match self {
            Self::Run { length } => give(Placed::run(at, *length)),
            Self::Strided { count, stride, length } => {
                for i in 0..*count {
                    give(Placed::run(times(i, *stride)?, *length));
                }
            }
            Self::Repeat { count, stride, nest } => {
                for i in 0..*count {
                    nest.each(times(i, *stride)?, &mut |part| part.layout.each(part.offset, give))?;
                }
            }
        }
        Ok(())
    }
}

impl Placed {
    /// `length > 0` bytes at the offset.
    pub(crate) fn run(offset: i64, length: u64) -> Self {
        Self {
            offset,
            layout: Layout::Run { length },
        }
    }

    /// The same, `by` bytes further.
    pub(crate) fn shifted(&self, by: i64) -> Result<Self, TypeError> {
        let offset = narrow(i128::from(self.offset) + i128::from(by), "displacement")?;
        Ok(Self {
            offset,
            layout: self.layout.clone(),
        })
    }
}

/// `count` times `body`, `stride` bytes apart. `count * size` must fit 63 bits (the caller has checked it).
pub(crate) fn repeat(count: u64, stride: i64, body: &Placed) -> Option<Placed> {
    repeat_with(count, stride, body, Nest::of_one)
}

/// As [`repeat`]; `nest` makes a nest of the layout when one is needed, or has one already.
pub(crate) fn repeat_with(
    count: u64,
    stride: i64,
    body: &Placed,
    nest: impl FnOnce(&Layout) -> Arc<Nest>,
) -> Option<Placed> {
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
        &Layout::Strided {
            count: inner,
            stride: step,
            length,
        } if continues(inner, step) => Layout::Strided {
            count: count * inner,
            stride: step,
            length,
        },
        Layout::Repeat { count: 1, nest, .. } => Layout::Repeat {
            count,
            stride,
            nest: nest.clone(),
        },
        Layout::Repeat {
            count: inner,
            stride: step,
            nest,
        } if continues(*inner, *step) => Layout::Repeat {
            count: count * inner,
            stride: *step,
            nest: nest.clone(),
        },
        inner => Layout::Repeat {
            count,
            stride,
            nest: nest(inner),
        },
    };
    Some(Placed {
        offset: body.offset,
        layout,
    })
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
    /// (that bounds the depth) and of the very small ones (that saves a level and lets runs merge). If there are few
    /// runs altogether, writes all of them out.
    fn splice(&mut self) -> Result<(), TypeError> {
        let total: u64 = self.parts.iter().map(|p| p.layout.size()).sum();
        let runs = self
            .parts
            .iter()
            .fold(0, |runs: u64, p| runs.saturating_add(p.layout.runs()));
        let wanted = |p: &Placed| match &p.layout {
            Layout::Run { .. } => false,
            Layout::Repeat { count: 1, nest, .. } => runs <= FEW || nest.size > total / 2 || nest.runs <= 4,
            _ => runs <= FEW,
        };
        if self.parts.len() < 2 || !self.parts.iter().any(wanted) {
            return Ok(());
        }
        let mut flat = Self::default();
        for part in std::mem::take(&mut self.parts) {
            match &part.layout {
                layout if runs <= FEW => layout.each(part.offset, &mut |p| flat.push(p))?,
                Layout::Repeat { nest, .. } if wanted(&part) => nest.each(part.offset, &mut |p| {
                    flat.push(p);
                    Ok(())
                })?,
                _ => flat.push(part),
            }
        }
        *self = flat;
        Ok(())
    }

    /// Runs of equal length at equal distances are a loop.
    fn strided(&self) -> Option<Placed> {
        let [first, second, ..] = &self.parts[..] else {
            return None;
        };
        let length = first.layout.run()?;
        let stride = second.offset.checked_sub(first.offset)?;
        let regular = self.parts.windows(2).all(|pair| {
            pair[1].layout.run() == Some(length) && pair[1].offset.checked_sub(pair[0].offset) == Some(stride)
        });
        let count = self.parts.len() as u64;
        regular.then_some(Placed {
            offset: first.offset,
            layout: Layout::Strided { count, stride, length },
        })
    }

    fn nest(self) -> Placed {
        let nest = Nest::of(self.parts);
        Placed {
            offset: 0,
            layout: Layout::Repeat {
                count: 1,
                stride: 0,
                nest: Arc::new(nest),
            },
        }
    }
}

impl Nest {
    /// The parts in order.
    fn of(parts: Vec<Placed>) -> Self {
        let (mut starts, mut size, mut runs, mut span) =
            (Vec::with_capacity(parts.len() + 1), 0, 0u64, (i64::MAX, i64::MIN));
        for part in &parts {
            starts.push(size);
            size += part.layout.size();
            runs = runs.saturating_add(part.layout.runs());
            let (low, high) = part.layout.span();
            span = (
                span.0.min(low.saturating_add(part.offset)),
                span.1.max(high.saturating_add(part.offset)),
            );
        }
        starts.push(size);
        let body = if parts.iter().all(|p| p.layout.run().is_some()) {
            let (offsets, lengths) = rows(&parts, starts);
            let step = matches!(lengths, Lengths::Equal(_)).then(|| step(&offsets)).flatten();
            Body::Rows(Rows {
                offsets,
                lengths,
                step,
                span,
            })
        } else {
            Body::Sequence(
                parts
                    .into_iter()
                    .zip(starts)
                    .map(|(placed, start)| SequencePart { start, placed })
                    .collect(),
            )
        };
        Self { size, runs, span, body }
    }

    /// A layout as a nest, to be repeated.
    pub(crate) fn of_one(layout: &Layout) -> Arc<Self> {
        let mut parts = Vec::new();
        if layout.runs() > FEW || layout.each(0, &mut |part| parts.push(part)).is_err() {
            parts = vec![Placed {
                offset: 0,
                layout: layout.clone(),
            }];
        }
        Arc::new(Self::of(parts))
    }

    /// Gives each part, moved by `by`.
    fn each(&self, by: i64, give: &mut dyn FnMut(Placed) -> Result<(), TypeError>) -> Result<(), TypeError> {
        match &self.body {
            Body::Rows(rows) => {
                for (i, &offset) in rows.offsets.iter().enumerate() {
                    give(Placed::run(offset, rows.start(i + 1) - rows.start(i)).shifted(by)?)?;
                }
            }
            Body::Sequence(parts) => {
                for part in parts {
                    give(part.placed.shifted(by)?)?;
                }
            }
        }
        Ok(())
    }
}

/// Offsets and lengths of parts that are all runs. Many short runs whose lengths differ are cut to one length if that
/// does not make many more of them: a loop over equal runs needs no decision for each.
fn rows(parts: &[Placed], starts: Vec<u64>) -> (Box<[i64]>, Lengths) {
    let lengths = || starts.windows(2).map(|pair| pair[1] - pair[0]);
    let (common, longest) = lengths().fold((0, 0), |(common, longest), n| (divisor(common, n), n.max(longest)));
    let size = starts.last().copied().unwrap_or(0);
    let count = parts.len() as u64;
    if longest == common {
        return (parts.iter().map(|p| p.offset).collect(), Lengths::Equal(common));
    }
    if count <= FEW || common < 4 || size / common > 2 * count {
        return (
            parts.iter().map(|p| p.offset).collect(),
            Lengths::Various(starts.into()),
        );
    }
    let cut = |(part, length): (&Placed, u64)| {
        let offset = part.offset;
        (0..length).step_by(common as usize).map(move |at| offset + at as i64)
    };
    (
        parts.iter().zip(lengths()).flat_map(cut).collect(),
        Lengths::Equal(common),
    )
}

/// The distance between neighbours, if there is only one.
fn step(offsets: &[i64]) -> Option<i64> {
    let mut steps = offsets.windows(2).map(|pair| pair[1].checked_sub(pair[0]));
    let first = steps.next()??;
    steps.all(|other| other == Some(first)).then_some(first)
}

/// Greatest common divisor.
fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
