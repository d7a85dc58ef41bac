// SPDX-License-Identifier: Apache-2.0
//! Views (MPI 5.0 section 14.3): which bytes of the file a process sees, as one stream.
//!
//! ```text
//!  file    |  displacement  | filetype | filetype | filetype | ...   one tile after the other, an extent apart
//!                             ## # ##    ## # ##    ## # ##          the data of a tile, and holes
//!  stream                     #####      #####      #####            what offsets in etypes count
//! ```
//! Types here are those of the file: in the representation of the file, in which sizes and extents may differ from
//! those in memory.

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_datatype::{Basic, Course, Datatype};

/// A view.
#[derive(Clone, Debug)]
pub struct View {
    displacement: u64,
    etype: Datatype,
    filetype: Datatype,
    /// If the stream has no holes: where its first byte lies.
    dense: Option<u64>,
    /// Whether in a tile each byte of the stream lies behind those in front of it.
    rising: bool,
    /// How much of the stream goes through the file from the beginning to the end, and has no byte twice.
    orderly: u64,
}

impl Default for View {
    fn default() -> Self {
        let byte = Datatype::of(Basic::Byte);
        Self {
            displacement: 0,
            etype: byte.clone(),
            filetype: byte,
            dense: Some(0),
            rising: true,
            orderly: u64::MAX,
        }
    }
}

impl View {
    /// A view, if these types make one. `writes`: data may be written through it, so no byte may be there twice.
    pub fn new(displacement: u64, etype: Datatype, filetype: Datatype, writes: bool) -> Result<Self> {
        if etype.size() == 0 {
            fail!(abi::MPI_ERR_TYPE, argument("etype"), "has no data");
        }
        if filetype.size() % etype.size() != 0 {
            fail!(
                abi::MPI_ERR_TYPE,
                argument("filetype"),
                "has {} bytes of data, which is not a multiple of the {} of argument etype",
                filetype.size(),
                etype.size()
            );
        }
        if filetype.size() > 0 {
            check_order(&filetype, writes)?;
        }
        let dense = match filetype.contiguous(2) {
            Some((offset, length)) if length > 0 => displacement.checked_add_signed(offset as i64),
            _ => None,
        };
        // What is read may overlap; tiles may lie between each other, or upon each other where a program uses the first
        // one only, as HDF5 does.
        let apart = dense.is_some() || filetype.true_extent() <= filetype.extent();
        let rising = Course::of(&filetype).is_none_or(|course| course.rises && course.apart);
        let orderly = match dense.is_some() || rising {
            true if apart => u64::MAX,
            true => filetype.size(),
            false => 0,
        };
        Ok(Self {
            displacement,
            etype,
            filetype,
            dense,
            rising,
            orderly,
        })
    }

    /// Whether a part of the stream goes through the file from the beginning to the end, and has no byte twice.
    pub(crate) fn is_orderly(&self, at: u64, length: u64) -> bool {
        at.saturating_add(length) <= self.orderly
    }

    /// The first byte of the file, and the one behind the last, of a part of the stream.
    pub(crate) fn span(&self, at: u64, length: u64) -> Option<(u64, u64)> {
        let last = length.checked_sub(1)?.checked_add(at)?;
        if self.is_orderly(at, length) {
            return Some((self.place(at)?, self.place(last)?.checked_add(1)?));
        }
        let mut span: Option<(u64, u64)> = None;
        self.runs(at, length, &mut |place, length| {
            let (low, high) = span.unwrap_or((place, place));
            span = Some((low.min(place), high.max(place.saturating_add(length))));
        });
        span
    }

    /// Byte of the file where the view begins.
    pub fn displacement(&self) -> u64 {
        self.displacement
    }

    /// Bytes of an etype in the file.
    pub fn unit(&self) -> u64 {
        self.etype.size()
    }

    /// If `length` bytes of the stream from `at` on lie in one piece: where.
    pub fn piece(&self, at: u64) -> Option<u64> {
        self.dense?.checked_add(at)
    }

    /// Gives the runs `(byte of the file, length)` of `length` bytes of the stream from `at` on, in order; neighbours
    /// are joined.
    pub fn runs(&self, at: u64, length: u64, give: &mut dyn FnMut(u64, u64)) {
        if length == 0 || self.filetype.size() == 0 {
            return;
        }
        if let Some(first) = self.piece(at) {
            return give(first, length);
        }
        let (size, extent) = (self.filetype.size(), self.filetype.extent() as u64);
        let (mut tile, mut skip, mut left) = (at / size, at % size, length);
        let mut last: Option<(u64, u64)> = None;
        while left > 0 {
            let take = left.min(size - skip);
            let start = self.displacement.wrapping_add(tile.wrapping_mul(extent));
            self.filetype.runs(skip, take, &mut |offset, length| {
                let place = start.wrapping_add_signed(offset);
                match &mut last {
                    Some((at, before)) if at.wrapping_add(*before) == place => *before += length,
                    other => {
                        if let Some((at, length)) = other.replace((place, length)) {
                            give(at, length);
                        }
                    }
                }
            });
            (tile, skip, left) = (tile + 1, 0, left - take);
        }
        if let Some((at, length)) = last {
            give(at, length);
        }
    }

    /// Byte of the file where a byte of the stream lies.
    pub fn place(&self, at: u64) -> Option<u64> {
        if let Some(place) = self.piece(at) {
            return Some(place);
        }
        let (size, extent) = (self.filetype.size(), u64::try_from(self.filetype.extent()).ok()?);
        let start = (at.checked_div(size)?)
            .checked_mul(extent)?
            .checked_add(self.displacement)?;
        let mut place = None;
        self.filetype
            .runs(at % size, 1, &mut |offset, _| place = start.checked_add_signed(offset));
        place.filter(|place| i64::try_from(*place).is_ok())
    }

    /// Byte of the file where the stream goes on from a byte of it. A stream without a byte begins where the view does,
    /// and goes on nowhere else.
    pub(crate) fn begins(&self, at: u64) -> Option<u64> {
        match (self.filetype.size(), at) {
            (0, 0) => Some(self.displacement),
            _ => self.place(at),
        }
    }

    /// How many bytes of the stream lie before a byte of the file.
    pub fn before(&self, place: u64) -> u64 {
        if let Some(first) = self.dense {
            return place.saturating_sub(first);
        }
        let (size, extent) = (self.filetype.size(), self.filetype.extent() as u64);
        if size == 0 || extent == 0 {
            return 0;
        }
        // The data of a tile may reach behind its upper bound, where the next one begins; they do not overlap all the
        // same.
        let reach = (self.filetype.true_lower_bound() + self.filetype.true_extent()).max(0) as u64;
        let whole = place.saturating_sub(self.displacement.saturating_add(reach)) / extent;
        let mut before = whole.saturating_mul(size);
        let mut tile = whole;
        loop {
            let start = self.displacement.saturating_add(tile.saturating_mul(extent));
            let inside = self.before_in_tile(place, start);
            before = before.saturating_add(inside);
            if inside < size {
                return before;
            }
            tile += 1;
        }
    }
}

impl View {
    /// How many bytes of the tile that begins there lie before a byte of the file.
    fn before_in_tile(&self, place: u64, start: u64) -> u64 {
        let size = self.filetype.size();
        if !self.rising {
            let mut inside = 0;
            self.filetype.runs(0, size, &mut |offset, length| {
                inside += place.saturating_sub(start.saturating_add_signed(offset)).min(length);
            });
            return inside;
        }
        // The first byte of the stream that does not: a tile may have more runs than there is time to go through.
        let (mut low, mut high) = (0, size);
        while low < high {
            let middle = low + (high - low) / 2;
            let mut lies_before = false;
            self.filetype.runs(middle, 1, &mut |offset, _| {
                lies_before = start.saturating_add_signed(offset) < place;
            });
            match lies_before {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }
}

/// Displacements of a filetype are not negative and do not decrease; for writing no byte is there twice. The standard
/// names no class for that; other libraries, and tests, have MPI_ERR_IO.
fn check_order(filetype: &Datatype, writes: bool) -> Result<()> {
    let wrong = Course::of(filetype).and_then(|course| match course {
        _ if course.least < 0 => Some("negative displacements"),
        _ if !course.rises => Some("displacements that decrease"),
        _ if writes && !course.apart => Some("data that overlap, and the file is open for writing"),
        _ => None,
    });
    let extent = filetype.extent();
    match wrong {
        Some(what) => fail!(abi::MPI_ERR_IO, argument("filetype"), "has {what}"),
        None if extent <= 0 => fail!(
            abi::MPI_ERR_IO,
            argument("filetype"),
            "has the extent {extent}, so that one would lie upon the next in the file"
        ),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strided() -> View {
        // 4 bytes of each 12, from byte 2 on.
        let byte = Datatype::of(Basic::Byte);
        let four = Datatype::contiguous_type(4, &byte).unwrap();
        let tile = Datatype::resized(&four, 0, 12).unwrap();
        View::new(2, byte, tile, true).unwrap()
    }

    #[test]
    fn streams_and_files_are_counted_alike() {
        let view = strided();
        let mut runs = Vec::new();
        view.runs(3, 6, &mut |at, length| runs.push((at, length)));
        assert_eq!(runs, [(5, 1), (14, 4), (26, 1)]);
        for at in 0..50 {
            let place = view.place(at).unwrap();
            assert_eq!((view.before(place), view.before(place + 1)), (at, at + 1));
        }
        assert_eq!(view.before(0), 0);
        assert_eq!(view.before(13), 4, "in a hole");
    }

    #[test]
    fn views_that_are_not_orderly_know_their_span() {
        let byte = Datatype::of(Basic::Byte);
        let twice = Datatype::hindexed(&[10, 1], &[0, 2], &byte).unwrap();
        let view = View::new(5, byte.clone(), twice, false).unwrap();
        assert_eq!((view.is_orderly(0, 11), view.span(0, 11)), (false, Some((5, 15))));
        let between = Datatype::resized(&Datatype::hindexed(&[1, 1], &[0, 10], &byte).unwrap(), 0, 4).unwrap();
        let view = View::new(0, byte.clone(), between, true).unwrap();
        assert_eq!((view.is_orderly(0, 3), view.span(1, 2)), (false, Some((4, 11))));
        let upon = Datatype::resized(&Datatype::hindexed(&[4, 4], &[0, 8], &byte).unwrap(), 0, 4).unwrap();
        let view = View::new(1, byte, upon, true).unwrap();
        assert_eq!((view.is_orderly(0, 8), view.span(2, 6)), (true, Some((3, 13))));
        assert_eq!(
            (strided().is_orderly(3, 2), strided().span(3, 2)),
            (true, Some((5, 15)))
        );
    }

    #[test]
    fn types_that_make_no_view_are_refused() {
        let byte = Datatype::of(Basic::Byte);
        let int = Datatype::of(Basic::Int32);
        let back = Datatype::hindexed(&[1, 1], &[8, 0], &byte).unwrap();
        for (etype, filetype, class) in [(&int, &byte, abi::MPI_ERR_TYPE), (&byte, &back, abi::MPI_ERR_IO)] {
            let error = View::new(0, etype.clone(), filetype.clone(), false).unwrap_err();
            assert_eq!(error.class, class);
        }
        let twice = Datatype::hindexed(&[4, 4], &[0, 2], &byte).unwrap();
        assert!(View::new(0, byte.clone(), twice.clone(), true).is_err());
        assert!(View::new(0, byte, twice, false).is_ok(), "legal for reading");
    }
}
