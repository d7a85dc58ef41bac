// SPDX-License-Identifier: Apache-2.0
//! Data of several processes for one part of the file, put in order: what lies side by side becomes one run.

use std::ops::Range;

use isthmus_wire::codec::DecodeError;
use isthmus_wire::file::{Runs, decode_body, encode_body};

/// Bytes for one place of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    place: u64,
    data: &'a [u8],
    /// Of pieces for the same byte that of the greatest number stays.
    order: usize,
}

/// Pieces that leave no hole between them.
#[derive(Debug)]
struct Group {
    place: u64,
    end: u64,
    pieces: Range<usize>,
    overlap: bool,
}

/// Pieces in order of their places.
#[derive(Debug)]
pub(crate) struct Pieces<'a> {
    pieces: Vec<Piece<'a>>,
    groups: Vec<Group>,
}

impl<'a> Pieces<'a> {
    /// Those of bodies, in the order in which they count as written. `most`: bytes that each may have.
    pub(crate) fn new(bodies: &'a [Vec<u8>], most: u64) -> Result<Self, DecodeError> {
        let mut pieces = Vec::new();
        for (order, body) in bodies.iter().enumerate() {
            let (runs, mut rest) = decode_body(body, most)?;
            for (place, length) in runs {
                let (data, behind) = rest.split_at(length as usize);
                pieces.push(Piece { place, data, order });
                rest = behind;
            }
        }
        pieces.sort_by_key(|piece| piece.place);
        let groups = groups(&pieces);
        Ok(Self { pieces, groups })
    }

    /// As one body.
    pub(crate) fn body(&self) -> Vec<u8> {
        let runs: Vec<_> = self
            .groups
            .iter()
            .map(|group| (group.place, group.end - group.place))
            .collect();
        let mut body = encode_body(&runs);
        let mut at = body.len();
        body.resize(at + runs.iter().map(|run| run.1 as usize).sum::<usize>(), 0);
        for group in &self.groups {
            let length = (group.end - group.place) as usize;
            self.fill(group, &mut body[at..at + length]);
            at += length;
        }
        body
    }

    /// Gives every run with its data.
    pub(crate) fn each<E>(&self, mut give: impl FnMut(u64, &[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut buffer = Vec::new();
        for group in &self.groups {
            if let [piece] = self.pieces[group.pieces.clone()] {
                give(piece.place, piece.data)?;
                continue;
            }
            buffer.resize((group.end - group.place) as usize, 0);
            self.fill(group, &mut buffer);
            give(group.place, &buffer)?;
        }
        Ok(())
    }

    fn fill(&self, group: &Group, out: &mut [u8]) {
        let mut put = |piece: &Piece<'_>| {
            out[(piece.place - group.place) as usize..][..piece.data.len()].copy_from_slice(piece.data);
        };
        let pieces = &self.pieces[group.pieces.clone()];
        if group.overlap {
            let mut in_turn = pieces.to_vec();
            in_turn.sort_by_key(|piece| piece.order);
            in_turn.iter().for_each(put);
        } else {
            pieces.iter().for_each(&mut put);
        }
    }
}

fn groups(pieces: &[Piece<'_>]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (at, piece) in pieces.iter().enumerate().filter(|(_, piece)| !piece.data.is_empty()) {
        let end = piece.place + piece.data.len() as u64;
        match groups.last_mut() {
            Some(group) if piece.place <= group.end => {
                group.overlap |= piece.place < group.end;
                group.end = group.end.max(end);
                group.pieces.end = at + 1;
            }
            _ => groups.push(Group {
                place: piece.place,
                end,
                pieces: at..at + 1,
                overlap: false,
            }),
        }
    }
    groups
}

/// What several lists of runs want together: in order, without overlap, neighbours joined.
pub(crate) fn union(lists: &[Runs]) -> Runs {
    let mut all: Runs = lists.iter().flatten().copied().filter(|run| run.1 > 0).collect();
    all.sort_unstable();
    let mut joined: Runs = Vec::new();
    for (place, length) in all {
        match joined.last_mut() {
            Some((first, known)) if place <= *first + *known => *known = (*known).max(place + length - *first),
            _ => joined.push((place, length)),
        }
    }
    joined
}

/// Data of a file: those of these runs, one behind the other, as far as the file goes.
pub(crate) struct Found {
    runs: Runs,
    /// Byte of the data where each run begins.
    starts: Vec<usize>,
    data: Vec<u8>,
}

impl Found {
    /// `runs` in order and apart, as [`union`] gives them.
    pub(crate) fn new(runs: Runs, data: Vec<u8>) -> Self {
        let starts = runs
            .iter()
            .scan(0, |end, run| {
                let start = *end;
                *end += run.1 as usize;
                Some(start)
            })
            .collect();
        Self { runs, starts, data }
    }

    /// The data of other runs, each of which lies in one of these. What is not there because the file ends is left out.
    pub(crate) fn of(&self, runs: &[(u64, u64)]) -> Vec<u8> {
        let mut out = Vec::with_capacity(runs.iter().map(|run| run.1 as usize).sum());
        for &(place, length) in runs {
            let Some(at) = self.runs.partition_point(|run| run.0 <= place).checked_sub(1) else {
                continue;
            };
            let from = self.starts[at] + (place - self.runs[at].0) as usize;
            let to = from.saturating_add(length as usize).min(self.data.len());
            out.extend_from_slice(self.data.get(from..to).unwrap_or_default());
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(runs: &[(u64, &[u8])]) -> Vec<u8> {
        let places: Vec<_> = runs.iter().map(|(at, data)| (*at, data.len() as u64)).collect();
        let mut body = encode_body(&places);
        runs.iter().for_each(|(_, data)| body.extend(*data));
        body
    }

    #[test]
    fn neighbours_are_one_run_and_the_last_writer_stays() {
        let bodies = [
            body(&[(0, b"aa"), (4, b"aa"), (8, b"aaa")]),
            body(&[(2, b"bb"), (6, b""), (9, b"b"), (20, b"b")]),
        ];
        let pieces = Pieces::new(&bodies, 100).unwrap();
        let mut runs = Vec::new();
        let told: Result<(), ()> = pieces.each(|place, data| {
            runs.push((place, String::from_utf8_lossy(data).into_owned()));
            Ok(())
        });
        told.unwrap();
        let text = |place, text: &str| (place, text.to_owned());
        assert_eq!(runs, [text(0, "aabbaa"), text(8, "aba"), text(20, "b")]);
        let joined = [pieces.body()];
        assert_eq!(Pieces::new(&joined, 100).unwrap().body(), joined[0]);
        assert_eq!(joined[0], body(&[(0, b"aabbaa"), (8, b"aba"), (20, b"b")]));
    }

    #[test]
    fn an_overlap_is_decided_by_rank_and_not_by_place() {
        let bodies = [body(&[(5, b"aaaaa")]), body(&[(3, b"bbbb")])];
        assert_eq!(Pieces::new(&bodies, 100).unwrap().body(), body(&[(3, b"bbbbaaa")]));
    }

    #[test]
    fn bodies_that_make_no_sense_are_refused() {
        let long = [body(&[(0, b"aaaa")])];
        assert!(Pieces::new(&long, 3).is_err());
        let mut short = body(&[(0, b"aaaa")]);
        short.pop();
        assert!(Pieces::new(&[short], 100).is_err());
    }

    #[test]
    fn everybody_gets_its_own_as_far_as_the_file_goes() {
        let lists = [vec![(0, 2), (6, 2)], vec![(1, 3), (20, 4)]];
        let all = union(&lists);
        assert_eq!(all, [(0, 4), (6, 2), (20, 4)]);
        let found = Found::new(all, b"abcdgh01".to_vec());
        assert_eq!(
            (found.of(&lists[0]), found.of(&lists[1])),
            (b"abgh".to_vec(), b"bcd01".to_vec())
        );
    }
}
