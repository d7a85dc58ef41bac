// SPDX-License-Identifier: Apache-2.0
//! Where in a file the data of accesses lie, in few words: so that what a collective access costs follows from its data
//! and not from how far apart in the file they are.
//!
//! ```text
//!  file      |####|   huge hole   |# # # #|   huge hole   |####|     of all processes
//!  extents   |----|               |-------|               |----|     with the bytes that each access has there
//!  measure   |####|##|####|                                          what file domains and windows are cut by
//! ```
//! Where at least a quarter of the bytes is accessed a byte of the file counts as one; elsewhere it counts as much as
//! the accesses have there. All computation is with integers: every process comes to the same result.

use crate::view::View;

/// Holes up to this many bytes are no matter: they cost little, and many holes would cost more to tell.
pub(crate) const HOLE: u64 = 64 << 10;
/// What lies within so many bytes is one extent whatever holes it has: an aggregator handles it at once.
const SPAN: u64 = 4 << 20;
/// Of what is accessed a file has at most so many times as many bytes where it counts as dense.
const DENSE: u64 = 4;
/// Extents that all processes together tell of at most, and one.
const ALL: usize = 1 << 18;
const ONE: usize = 4096;
/// Bytes of an extent that travels.
pub(crate) const BYTES: usize = 24;

/// A part of the file, and how many bytes of an access lie there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) low: u64,
    /// Behind the last byte.
    pub(crate) high: u64,
    pub(crate) bytes: u64,
}

/// How many extents each of so many processes may tell of.
pub(crate) fn most(processes: u32) -> usize {
    (ALL / (processes as usize).max(1)).clamp(64, ONE)
}

/// At most `most` extents with all data of an access, in order and apart. Where it has more pieces than that those go
/// together between which there are few bytes.
pub(crate) fn of(view: &View, at: u64, length: u64, most: usize) -> Vec<Extent> {
    let Some((low, high)) = view.span(at, length).filter(|(low, high)| low < high) else {
        return Vec::new();
    };
    let span = high - low;
    if span <= SPAN || span <= length.saturating_mul(DENSE) {
        let bytes = length.min(span);
        return vec![Extent { low, high, bytes }];
    }
    let exact = gathered(view, at, length, 0, most);
    if exact.len() <= most {
        return exact;
    }
    // Two neighbours that did not go together have more than that, so they are at most half as many as may be, and one.
    gathered(view, at, length, (length / most as u64).saturating_mul(4) + 1, most)
}

/// Extents that have at most `together` bytes or no large holes; more than `most` are not listed all.
fn gathered(view: &View, at: u64, length: u64, together: u64, most: usize) -> Vec<Extent> {
    let mut extents: Vec<Extent> = Vec::new();
    let mut add = |low: u64, length: u64| {
        let high = low.saturating_add(length);
        let are_too_many = extents.len() > most;
        match extents.last_mut() {
            Some(last) if low.saturating_sub(last.high) <= HOLE || last.bytes.saturating_add(length) <= together => {
                last.high = last.high.max(high);
                last.bytes = last.bytes.saturating_add(length).min(last.high - last.low);
            }
            _ if are_too_many => {}
            _ => extents.push(Extent {
                low,
                high,
                bytes: length,
            }),
        }
    };
    if view.is_orderly(at, length) {
        view.runs(at, length, &mut add);
    } else {
        let mut runs = Vec::new();
        view.runs(at, length, &mut |place, length| runs.push((place, length)));
        runs.sort_unstable();
        runs.into_iter().for_each(|(place, length)| add(place, length));
    }
    extents
}

/// As they travel, `room` of them.
pub(crate) fn encode(extents: &[Extent], room: usize) -> Vec<u8> {
    let words = extents.iter().take(room).flat_map(|one| [one.low, one.high, one.bytes]);
    let mut out: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    out.resize(room * BYTES, 0);
    out
}

/// What has travelled; what makes no sense is left out.
pub(crate) fn decode(bytes: &[u8]) -> Vec<Extent> {
    let extents = bytes.chunks_exact(BYTES).filter_map(|extent| {
        let at = |i: usize| crate::group::word(&extent[8 * i..]);
        checked(at(0), at(1), at(2))
    });
    let mut extents: Vec<_> = extents.collect();
    extents.sort_by_key(|extent| (extent.low, extent.high));
    extents
}

/// An extent that a process says it has.
pub(crate) fn checked(low: u64, high: u64, bytes: u64) -> Option<Extent> {
    let makes_sense = low < high && i64::try_from(high).is_ok();
    makes_sense.then(|| Extent {
        low,
        high,
        bytes: bytes.clamp(1, high - low),
    })
}

/// A part of the file in which every byte counts alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    low: u64,
    high: u64,
    /// How much counts before it, and in it.
    before: u64,
    measure: u64,
}

/// What of the file is accessed.
#[derive(Debug)]
pub(crate) struct Measure {
    segments: Vec<Segment>,
    pub(crate) total: u64,
    /// Whether each byte counts as one.
    pub(crate) is_dense: bool,
}

/// One byte of data for each byte of the file, as a density.
const FULL: u128 = 1 << 64;

impl Measure {
    /// Of all accesses. What is longer than a stripe begins and ends with one.
    pub(crate) fn new(extents: &[Extent], stripe: u64) -> Self {
        let mut changes: Vec<(u64, bool, u128)> = Vec::with_capacity(2 * extents.len());
        for extent in extents {
            let density = (u128::from(extent.bytes) << 64) / u128::from(extent.high - extent.low);
            changes.push((extent.low, true, density));
            changes.push((extent.high, false, density));
        }
        changes.sort_unstable_by_key(|change| change.0);
        let (mut all, mut density, mut open, mut from) = (Self::nothing(), 0_u128, 0_usize, 0);
        let mut interval: Vec<Segment> = Vec::new();
        for (place, begins, change) in changes {
            if open > 0 && place > from {
                let measure = (u128::from(place - from) * density.min(FULL)) >> 64;
                interval.push(Segment {
                    low: from,
                    high: place,
                    before: 0,
                    measure: (measure as u64).max(1),
                });
            }
            from = place;
            if begins {
                // What begins where another ends belongs to it, also if the other's end is looked at first.
                let apart = interval.last().is_some_and(|last| last.high < place);
                if open == 0 && apart {
                    all.add(std::mem::take(&mut interval), stripe);
                }
                (open, density) = (open + 1, density + change);
            } else {
                (open, density) = (open - 1, density - change);
            }
        }
        all.add(interval, stripe);
        if let Some(last) = all.segments.last_mut() {
            // Behind the last byte there is nothing to align.
            let end = extents.iter().map(|extent| extent.high).max().unwrap_or_default();
            let more = last.high - end.max(last.low);
            if last.measure == last.high - last.low && more < last.measure {
                (last.high, last.measure, all.total) = (end, last.measure - more, all.total - more);
            }
        }
        all
    }

    fn nothing() -> Self {
        Self {
            segments: Vec::new(),
            total: 0,
            is_dense: true,
        }
    }

    /// Adds a part of the file without holes between extents.
    fn add(&mut self, mut interval: Vec<Segment>, stripe: u64) {
        let (Some(first), Some(last)) = (interval.first(), interval.last()) else {
            return;
        };
        let (mut low, mut high) = (first.low, last.high);
        let measure: u64 = interval.iter().map(|segment| segment.measure).sum();
        if high - low <= measure.saturating_mul(DENSE) {
            if high - low >= stripe {
                let before = self.segments.last().map_or(0, |last| last.high);
                low = (low - low % stripe).max(before);
                high = high.checked_next_multiple_of(stripe).unwrap_or(high);
            }
            interval = vec![Segment {
                low,
                high,
                before: 0,
                measure: high - low,
            }];
        } else {
            self.is_dense = false;
        }
        for segment in interval {
            // The one before may end with a stripe behind where this one begins.
            let low = self
                .segments
                .last()
                .map_or(segment.low, |last| last.high.max(segment.low));
            if low >= segment.high {
                continue;
            }
            let cut = u128::from(segment.measure) * u128::from(segment.high - low);
            let measure = (cut / u128::from(segment.high - segment.low)) as u64;
            self.segments.push(Segment {
                low,
                high: segment.high,
                before: self.total,
                measure: measure.max(1),
            });
            self.total = self.total.saturating_add(measure.max(1));
        }
    }

    /// Where in the file so much of what counts lies before.
    pub(crate) fn place(&self, measure: u64) -> u64 {
        let at = self.segments.partition_point(|segment| segment.before <= measure);
        let Some(segment) = at.checked_sub(1).and_then(|at| self.segments.get(at)) else {
            return self.segments.first().map_or(0, |first| first.low);
        };
        let inside = u128::from(measure - segment.before) * u128::from(segment.high - segment.low);
        let place = segment.low + (inside / u128::from(segment.measure)).min(u128::from(u64::MAX >> 1)) as u64;
        place.min(segment.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_datatype::{Basic, Datatype};

    /// Blocks of 8 bytes, so far apart.
    fn apart(stride: i64) -> View {
        let byte = Datatype::of(Basic::Byte);
        let block = Datatype::contiguous_type(8, &byte).unwrap();
        View::new(0, byte, Datatype::resized(&block, 0, stride).unwrap(), true).unwrap()
    }

    fn extent(low: u64, high: u64, bytes: u64) -> Extent {
        Extent { low, high, bytes }
    }

    #[test]
    fn an_access_has_few_extents_however_far_its_pieces_are_apart() {
        assert_eq!(
            of(&View::default(), 1 << 60, 8, 64),
            [extent(1 << 60, (1 << 60) + 8, 8)]
        );
        assert_eq!(of(&View::default(), 5, 0, 64), []);
        let far = of(&apart(1 << 40), 0, 24, 64);
        assert_eq!(far, [0, 1, 2].map(|i| extent(i << 40, (i << 40) + 8, 8)));
        let many = of(&apart(1 << 40), 0, 8000, 64);
        assert!(many.len() <= 64 && many.len() > 16, "{}", many.len());
        assert_eq!(many.iter().map(|extent| extent.bytes).sum::<u64>(), 8000);
        assert!(many.windows(2).all(|pair| pair[0].high < pair[1].low));
        assert_eq!(decode(&encode(&far, 4)), far);
    }

    #[test]
    fn what_is_accessed_is_cut_by_its_data_and_not_by_its_holes() {
        let stripe = 1 << 20;
        let measure = Measure::new(&[extent(1 << 60, (1 << 60) + 8, 8), extent(0, 8, 8)], stripe);
        assert_eq!((measure.total, measure.place(0), measure.place(8)), (16, 0, 1 << 60));
        assert_eq!(measure.place(16), (1 << 60) + 8);
        // A thousandth of the bytes.
        let thin = Measure::new(&[extent(0, 1 << 40, 1 << 30), extent(0, 1 << 40, 1 << 30)], stripe);
        assert_eq!(
            (thin.total, thin.place(1 << 30), thin.is_dense),
            (2 << 30, 1 << 39, false)
        );
        // Interleaved accesses count as what lies between the first and the last byte, by stripes.
        let strided = [
            extent(100, 40 << 20, 10 << 20),
            extent(4196, (40 << 20) + 4096, 10 << 20),
        ];
        let dense = Measure::new(&strided, stripe);
        assert_eq!((dense.total, dense.is_dense), ((40 << 20) + 4096, true));
        for at in [0, 1, 7 << 20, 40 << 20] {
            assert_eq!(dense.place(at), at);
        }
        // Neighbours that touch, in any order.
        let touching = Measure::new(&[extent(10, 20, 10), extent(0, 10, 10)], stripe);
        assert_eq!((touching.segments.len(), touching.total), (1, 20));
    }

    #[test]
    fn what_others_say_of_their_accesses_cannot_make_it_fail() {
        let words = [u64::MAX, 0, 1, i64::MAX as u64, (i64::MAX as u64) - 1, 1 << 62];
        for low in words {
            for high in words {
                for bytes in words {
                    let said: Vec<u8> = [low, high, bytes].into_iter().flat_map(u64::to_le_bytes).collect();
                    let mut extents = decode(&said);
                    extents.extend(checked(0, i64::MAX as u64, u64::MAX));
                    let measure = Measure::new(&extents, 1 << 40);
                    assert!(measure.place(measure.total) >= measure.place(measure.total / 2));
                }
            }
        }
    }
}
