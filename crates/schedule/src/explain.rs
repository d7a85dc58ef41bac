// SPDX-License-Identifier: Apache-2.0
//! What is chosen for a call, for people. The choices are asked from where plans get them.

use crate::choose::{self, Top};
use crate::{Blocks, Call, Operation, allreduce, barrier, reduce_scatter, scan};
use isthmus_topology::{Level, Shape};
use std::sync::Arc;

/// What is chosen for one tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Level of the tier; of pairwise exchanges, the slowest level.
    pub level: Level,
    /// Groups of leaders that talk at this tier.
    pub councils: u32,
    /// Members of the largest of them.
    pub members: u32,
    /// What they do.
    pub algorithm: String,
    /// What the choice was made from.
    pub why: String,
}

/// What is chosen for a whole call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Per tier, slowest level first.
    pub choices: Vec<Choice>,
    /// Pieces that the message is handed on in, and bytes of one.
    pub pieces: (u64, u64),
}

/// What stands behind the choices of a call.
struct Form {
    shape: Arc<Shape>,
    top: Top,
    /// Bytes that decide about trees.
    bytes: u64,
    /// Whether long messages are cut.
    cut: bool,
}

/// Explains a call. `None` for calls that it does not describe: without data, with unequal blocks, in the fixed order, of
/// neighbourhoods, and reductions whose order of ranks is not that of positions.
pub fn explain(call: &Call, shape: &Arc<Shape>) -> Option<Explanation> {
    let Blocks::Equal(units) = call.blocks else { return None };
    if call.operation == Operation::Alltoall && units > 0 && !choose::alltoall_by_leaders(shape, call.bytes(units)) {
        return Some(pairwise(shape, call.bytes(units)));
    }
    let form = form(call, shape, units)?;
    let tiers = 0..form.shape.tiers();
    let cut = choose::cut(call, shape, units, form.top);
    Some(Explanation {
        choices: tiers.map(|tier| choice(&form, tier)).collect(),
        pieces: match form.cut {
            true => (cut.pieces(), call.bytes(cut.piece.min(units))),
            false => (1, call.bytes(units)),
        },
    })
}

fn form(call: &Call, shape: &Arc<Shape>, units: u64) -> Option<Form> {
    use Operation as O;
    let (bytes, all) = (
        call.bytes(units),
        call.bytes(units.saturating_mul(u64::from(shape.size()))),
    );
    let described = units > 0 && !call.fixed && (call.commutative || shape.in_rank_order());
    let (top, bytes, cut) = match call.operation {
        O::Barrier => (barrier::top(shape), 0, false),
        _ if !described => return None,
        O::Bcast | O::Reduce => (Top::Tree, bytes, true),
        O::Allreduce => (allreduce::top(call, shape), bytes, true),
        O::Gather | O::Scatter => (Top::Tree, bytes, false),
        O::Allgather => (choose::gathering(shape, all), all, false),
        O::Alltoall => (Top::Flat, all, false),
        O::Scan | O::Exscan if shape.in_rank_order() => (scan::top(shape, bytes), bytes, true),
        O::ReduceScatterBlock => (reduce_scatter::top(shape, all), all, false),
        _ => return None,
    };
    let shape = Arc::clone(shape);
    Some(Form { shape, top, bytes, cut })
}

fn choice(form: &Form, tier: usize) -> Choice {
    let level = form.shape.level(tier);
    let (councils, members) = sizes(&form.shape, tier);
    let algorithm = match form.top {
        Top::Flat if tier == 0 => "each leader to each other, one trip".to_owned(),
        Top::Doubling if tier == 0 => "doubling, log2 of the members trips".to_owned(),
        Top::Split if tier == 0 => "shares to each leader, results from each, two trips".to_owned(),
        _ => match choose::radix(level, members, form.bytes) {
            radix if radix >= members => "flat tree".to_owned(),
            2 => "binomial tree".to_owned(),
            radix => format!("tree of radix {radix}"),
        },
    };
    Choice {
        level,
        councils,
        members,
        algorithm,
        why: choose::facts(members, form.bytes),
    }
}

/// Groups of more than one member at a tier, and members of the largest.
fn sizes(shape: &Shape, tier: usize) -> (u32, u32) {
    let sizes = (0..shape.clusters(tier)).map(|c| shape.parts(tier, c).len() as u32);
    sizes
        .filter(|&members| members > 1)
        .fold((0, 0), |(count, most), members| (count + 1, most.max(members)))
}

fn pairwise(shape: &Shape, bytes: u64) -> Explanation {
    let members = shape.size();
    let choice = (shape.tiers() > 0).then(|| Choice {
        level: shape.level(0),
        councils: 1,
        members,
        algorithm: "each process to each other".to_owned(),
        why: choose::facts(members, bytes),
    });
    Explanation {
        choices: choice.into_iter().collect(),
        pieces: (1, bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Arc<Shape> {
        let levels = [Level::WideArea, Level::LocalArea, Level::Node];
        Arc::new(Shape::from_colours(&levels, 24, |rank, depth| {
            [rank / 8, rank / 4][depth]
        }))
    }

    fn algorithms(operation: Operation, units: u64) -> Vec<(Level, u32, u32, String)> {
        let explained = explain(&Call::new(operation, units), &grid()).unwrap();
        let row = |c: Choice| (c.level, c.councils, c.members, c.algorithm);
        explained.choices.into_iter().map(row).collect()
    }

    #[test]
    fn choices_per_tier() {
        let each = "each leader to each other, one trip";
        assert_eq!(
            algorithms(Operation::Allreduce, 8),
            [
                (Level::WideArea, 1, 3, each.into()),
                (Level::LocalArea, 3, 2, "flat tree".into()),
                (Level::Node, 6, 4, "flat tree".into()),
            ]
        );
        assert_eq!(
            algorithms(Operation::Allreduce, 8 << 20)[0].3,
            "shares to each leader, results from each, two trips"
        );
        assert_eq!(algorithms(Operation::Bcast, 8 << 20)[2].3, "binomial tree");
        assert_eq!(algorithms(Operation::Alltoall, 8 << 20).len(), 1);
        assert_eq!(algorithms(Operation::Barrier, 0)[0].3, each);
    }

    #[test]
    fn reasons_and_pieces() {
        let explained = explain(&Call::new(Operation::Bcast, 16 << 20), &grid()).unwrap();
        assert_eq!(explained.pieces, (128, 128 << 10));
        assert_eq!(
            explained.choices[0].why,
            "3 members <= FLAT (16), 16777216 bytes > LONG (32768)"
        );
        assert_eq!(explain(&Call::new(Operation::Bcast, 0), &grid()), None);
    }
}
