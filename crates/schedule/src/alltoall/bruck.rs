// SPDX-License-Identifier: Apache-2.0
//! **Alltoall among leaders in rounds: in that of distance d, each hands on all parcels whose way to go has the bit d,
//! d places further.**
//!
//! In a group with one tier everybody is a leader, and a parcel is a block.
//!
//! | | |
//! |---|---|
//! | messages | k ⌈log2 k⌉ |
//! | trips | ⌈log2 k⌉ |
//! | bytes | a parcel for the member d places further crosses as often as d has bits: (k / 2) log2 k parcels from each member for powers of two |
//! | copies | every parcel each time that it is handed on |
//! | restrictions | equal blocks; more than two members; results of all processes up to 16 MiB, up to 256 processes |
//! | paper | Bruck, Ho, Kipnis, Upfal, Weathersby: Efficient algorithms for all-to-all communications in multiport message-passing systems, 1997 |

use crate::Network;
use crate::parcels::Parcels;
use crate::script::{Kind, Piece, Script};
use crate::step::{Action, After, Slice};

/// Exchanges the parcels. `pack` puts the parcel for a leader into its place and gives the steps after which it is
/// there. Gives the steps after which all have come.
pub(super) fn exchange(
    script: &mut Script,
    parcels: &Parcels<'_>,
    mut pack: impl FnMut(&mut Script, u32) -> After,
) -> After {
    let (me, k) = (parcels.council.index, parcels.council.size);
    // By the distance from its sender to its receiver: the parcel that is here, and after which steps it is.
    let mut held: Vec<(Slice, After)> = vec![(Slice::NOTHING, After::NONE)];
    for to in (1..k).map(|distance| (me + distance) % k) {
        let packed = pack(script, to);
        held.push((parcels.to(to), packed));
    }
    let mut come = After::NONE;
    for (round, step) in rounds(k) {
        let slot = Piece::numbered(u64::from(round)).slot(Kind::Exchange);
        let (to, from) = ((me + step) % k, (me + k - step) % k);
        let (data, ready) = collect(script, &held, step);
        let to = parcels.council.rank(to);
        script.push(Action::Send { to, data, slot }, ready);
        let places = arrivals(parcels, step);
        let length = places.iter().map(|place| place.2).sum();
        let data = Slice {
            buffer: script.memory(length),
            offset: 0,
            length,
        };
        let from = parcels.council.rank(from);
        let received = After::from_iter([script.push(Action::Receive { from, data, slot }, After::NONE)]);
        let mut offset = 0;
        for (distance, sender, length) in places {
            let here = Slice { offset, length, ..data };
            offset += length;
            match distance < 2 * step {
                true => {
                    let (from, to) = (here, parcels.from(sender));
                    come.append(script.push(Action::Copy { from, to }, received.clone()));
                }
                false => held[distance as usize] = (here, received.clone()),
            }
        }
    }
    script.join(come)
}

/// Number and distance of each round.
fn rounds(k: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..u32::BITS)
        .map(|round| (round, 1 << round))
        .take_while(move |&(_, step)| step < k)
}

/// What goes on in the round of a distance, in order of the distance that it has to go in all; where it is, or is put
/// together, and after which steps.
fn collect(script: &mut Script, held: &[(Slice, After)], step: u32) -> (Slice, After) {
    let moved: Vec<&(Slice, After)> = (0u32..)
        .zip(held)
        .filter(|(distance, _)| distance & step != 0)
        .map(|(_, parcel)| parcel)
        .collect();
    if let [(only, ready)] = moved.as_slice() {
        return (*only, ready.clone());
    }
    let length = moved.iter().map(|(parcel, _)| parcel.length).sum();
    let buffer = script.memory(length);
    let (mut offset, mut collected) = (0, After::NONE);
    for &&(from, ref ready) in &moved {
        let to = Slice {
            buffer,
            offset,
            length: from.length,
        };
        offset += from.length;
        collected.append(script.push(Action::Copy { from, to }, ready.clone()));
    }
    let whole = Slice {
        buffer,
        offset: 0,
        length,
    };
    (whole, script.join(collected))
}

/// The parcels that come in the round of a distance: how far they go in all, from whom, and their lengths.
fn arrivals(parcels: &Parcels<'_>, step: u32) -> Vec<(u32, u32, u64)> {
    let (me, k) = (parcels.council.index, parcels.council.size);
    let moved = (1..k).filter(|distance| distance & step != 0);
    moved
        .map(|distance| {
            let sender = (me + k - distance % (2 * step)) % k;
            (distance, sender, (parcels.length)(sender, (sender + distance) % k))
        })
        .collect()
}

/// Messages among so many members.
pub(super) fn messages(members: u64) -> u64 {
    members * u64::from(members.next_power_of_two().ilog2())
}

/// Blocks that cross among leaders: those of each process of a part for each of another, as often as they are handed
/// on.
pub(super) fn crossings(network: &Network) -> u64 {
    let k = network.clusters(1);
    let members = |part: u32| network.span(1, part).len() as u64;
    let of = |(from, distance): (u32, u32)| {
        u64::from(distance.count_ones()) * members(from) * members((from + distance) % k)
    };
    (0..k).flat_map(|from| (1..k).map(move |d| (from, d))).map(of).sum()
}
