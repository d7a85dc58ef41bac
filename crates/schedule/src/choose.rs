// SPDX-License-Identifier: Apache-2.0
//! Every choice between algorithms, in one place.
//!
//! All members must choose alike, so choices depend only on what is equal on all of them: the shape, the
//! operation and its size. The numbers are fixed for now; they are meant to become results of a cost model over measured links.

use crate::Call;
use crate::script::Cut;
use isthmus_topology::{Level, Shape};

/// Messages up to this many bytes are all latency.
const SHORT: u64 = 4 << 10;
/// Messages above this many bytes are all bandwidth.
const LONG: u64 = 32 << 10;
/// Members that a flat tree or exchange serves at most between sites and machines: one trip of 10 ms and more costs as much as
/// hundreds of sends, but an exchange has members² messages.
const FLAT: u32 = 16;

/// How the leaders of the outermost tier come together when all need the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Top {
    /// No exchange: one tree over the whole group, there and back. 2 (k − 1) messages, two trips of a flat tree.
    Tree,
    /// Each sends to each. k (k − 1) messages, one trip.
    Flat,
    /// Recursive doubling or dissemination. k log2 k messages, log2 k trips.
    Doubling,
    /// Each sends each its share, then each sends each its result. 2 k (k − 1) messages, two trips, 2 (k − 1) / k of the bytes.
    Split,
}

/// Radix of the tree among `members` at a level, for messages of so many bytes.
pub(crate) fn radix(level: Level, members: u32, bytes: u64) -> u32 {
    match level {
        Level::WideArea if members <= 4 * FLAT => members,
        Level::WideArea => FLAT,
        Level::LocalArea if members <= FLAT && bytes <= LONG => members,
        // Few processes that share few cores: what costs is waking each other in turn.
        Level::Node if members <= 8 && bytes <= SHORT => members,
        Level::Node if bytes <= SHORT => 4,
        _ => 2,
    }
}

/// Meeting of the leaders for barrier, allreduce, scan and reduce_scatter of so many bytes.
pub(crate) fn meeting(shape: &Shape, bytes: u64) -> Top {
    if shape.tiers() == 0 {
        return Top::Tree;
    }
    let members = shape.clusters(1);
    match shape.level(0) {
        _ if members == 2 => Top::Flat,
        Level::WideArea | Level::LocalArea if members > FLAT => Top::Tree,
        level if bytes > LONG && members <= 4 * FLAT && split_pays(level, members, bytes) => Top::Split,
        Level::WideArea | Level::LocalArea => Top::Flat,
        Level::Machine | Level::Vendor if bytes <= SHORT => Top::Doubling,
        _ => Top::Tree,
    }
}

/// Whether the leaders meet in an allreduce whose order is fixed: where one trip less is worth more than the bytes.
pub(crate) fn fixed_meeting(shape: &Shape, bytes: u64) -> bool {
    shape.tiers() > 0 && shape.level(0) <= Level::LocalArea && shape.clusters(1) <= FLAT && bytes <= LONG
}

/// Whether the bytes that shares save each leader, (k − 1) (k − 2) / k of the message, are worth a second trip: as many as the
/// link carries in that time (20 ms at 100 Mbit/s; 0.5 ms at 1 Gbit/s; inside a machine, nothing).
fn split_pays(level: Level, members: u32, bytes: u64) -> bool {
    let k = u64::from(members);
    let saved = bytes.saturating_mul((k - 1) * (k - 2)) / k;
    match level {
        Level::WideArea => saved > 256 << 10,
        Level::LocalArea => saved > 64 << 10,
        Level::Machine | Level::Vendor | Level::Node => true,
    }
}

/// Meeting of the leaders for allgather with a result of so many bytes: flat or tree.
pub(crate) fn gathering(shape: &Shape, bytes: u64) -> Top {
    if shape.tiers() == 0 {
        return Top::Tree;
    }
    let members = shape.clusters(1);
    match shape.level(0) {
        Level::WideArea | Level::LocalArea if members > FLAT => Top::Tree,
        Level::WideArea | Level::LocalArea => Top::Flat,
        _ if members == 2 || (bytes > LONG && members <= 4 * FLAT) => Top::Flat,
        _ => Top::Tree,
    }
}

/// Whether a message of so many bytes is better handed on part by part.
pub(crate) fn is_long(bytes: u64) -> bool {
    bytes > LONG
}

/// Whether alltoall goes through leaders: blocks are small, some link is slow, and the leaders' copies stay few.
pub(crate) fn alltoall_by_leaders(shape: &Shape, block_bytes: u64) -> bool {
    let slow = shape.tiers() > 1 && shape.level(0) <= Level::LocalArea;
    let p = u64::from(shape.size());
    slow && block_bytes <= SHORT && p <= 256 && shape.clusters(1) <= FLAT && p * p * block_bytes <= 16 << 20
}

/// Whether data that cannot be combined on the way in the order of ranks are rather brought together whole: `bytes` of all processes.
pub(crate) fn bring_whole(bytes: u64) -> bool {
    bytes <= 64 << 10
}

/// How a message of `total` units along trees is cut.
pub(crate) fn cut(call: &Call, shape: &Shape, total: u64, top: Top) -> Cut {
    let wide = shape.tiers() > 0 && shape.level(0) <= Level::LocalArea;
    let (bytes, lanes) = match (wide, top) {
        // A link with a long round trip is kept full by many pieces at once.
        (true, _) => (128 << 10, 16),
        (false, Top::Split) if shape.tiers() == 1 => (1 << 20, 2),
        (false, Top::Split) => (256 << 10, 4),
        // A piece costs a handshake of some microseconds: measured on a node, 64 KiB pieces take up to twice as long as these.
        (false, _) if shape.tiers() > 0 && shape.level(0) == Level::Node => (512 << 10, 4),
        (false, _) => (64 << 10, 4),
    };
    let granule = call.granule.max(1);
    let units = (bytes / call.unit_bytes.max(1)).max(1).div_ceil(granule) * granule;
    let piece = if total <= units + units / 2 {
        total.max(1)
    } else {
        units
    };
    Cut { total, piece, lanes }
}

/// How a number of members and of bytes stands to the thresholds of this file, for people.
pub(crate) fn facts(members: u32, bytes: u64) -> String {
    let size = match bytes {
        _ if bytes <= SHORT => format!("{bytes} bytes <= SHORT ({SHORT})"),
        _ if bytes <= LONG => format!("SHORT ({SHORT}) < {bytes} bytes <= LONG ({LONG})"),
        _ => format!("{bytes} bytes > LONG ({LONG})"),
    };
    let relation = if members <= FLAT { "<=" } else { ">" };
    format!("{members} members {relation} FLAT ({FLAT}), {size}")
}
