// SPDX-License-Identifier: Apache-2.0
//! How a call is carried out: an algorithm, a form for the trees of each tier, and how long messages are cut.

use crate::Call;
use crate::amount::Cost;
use crate::form::Form;
use crate::script::{Cut, Turns};

/// How the trees of the shares differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// One tree.
    Whole,
    /// The top is given: each share goes through another part of the outermost tier.
    Relayed,
    /// The top is given, and serves all parts of the outermost tier: each share through another leader of each.
    Dealt,
    /// The parts of the outermost tier are at the top in turn.
    Tops,
}

/// How pieces are dealt out to trees, and leaders of each part of the outermost tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dealing {
    pub(crate) sharing: Sharing,
    pub(crate) leaders: u32,
}

impl Dealing {
    /// One tree for all.
    pub(crate) const WHOLE: Self = Self {
        sharing: Sharing::Whole,
        leaders: 1,
    };
}

/// How the leaders of the outermost tier come together when all need the result, or which other way is taken: the names
/// of the algorithms' files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// Trees over all tiers; where all need the result, there and back. 2 (k − 1) messages, two trips of a flat tree.
    Tree,
    /// Leaders send each to each. k (k − 1) messages, one trip.
    Flat,
    /// The same, but everybody's item takes its quickest way, which may lead through others. k (k − 1) messages.
    Routed,
    /// Leaders hand on what they get around a ring. k (k − 1) messages, k − 1 trips.
    Ring,
    /// Leaders double or disseminate. k log2 k messages, log2 k trips.
    Doubling,
    /// Leaders send what they have, twice as much in each round. k log2 k messages, log2 k trips.
    Bruck,
    /// Leaders exchange halves of the data with neighbours, then quarters. k log2 k messages, log2 k trips; twice as
    /// many where all need all of the result.
    Halving,
    /// Each leader sends each its share, then each sends each its result. 2 k (k − 1) messages, two trips, 2 (k − 1) /
    /// k of the bytes.
    Split,
    /// Pieces are dealt out to several trees ([`shares`](crate::shares)).
    Shared,
    /// Trees without leaders for sites that act for no other.
    Direct,
    /// All contributions are brought where the result is needed, whole.
    Whole,
    /// Each process sends to each.
    Pairwise,
    /// The processes of a node send together to each process of other sites.
    Partners,
    /// One process on either side carries what passes between two sites.
    Envoys,
    /// Blocks are sorted by leaders.
    Leaders,
    /// The same, and what leaders send each other takes the quickest way.
    LeadersRouted,
    /// In one order of association.
    Fixed,
    /// The same, and leaders send each to each.
    FixedFlat,
    /// The same on the quickest ways.
    FixedRouted,
}

impl Algorithm {
    const ALL: [Self; 19] = [
        Self::Tree,
        Self::Flat,
        Self::Routed,
        Self::Ring,
        Self::Doubling,
        Self::Bruck,
        Self::Halving,
        Self::Split,
        Self::Shared,
        Self::Direct,
        Self::Whole,
        Self::Pairwise,
        Self::Partners,
        Self::Envoys,
        Self::Leaders,
        Self::LeadersRouted,
        Self::Fixed,
        Self::FixedFlat,
        Self::FixedRouted,
    ];

    /// Name for people and in overrides.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Flat => "flat",
            Self::Routed => "routed",
            Self::Ring => "ring",
            Self::Doubling => "doubling",
            Self::Bruck => "bruck",
            Self::Halving => "halving",
            Self::Split => "split",
            Self::Shared => "shared",
            Self::Direct => "direct",
            Self::Whole => "whole",
            Self::Pairwise => "pairwise",
            Self::Partners => "partners",
            Self::Envoys => "envoys",
            Self::Leaders => "leaders",
            Self::LeadersRouted => "leaders_routed",
            Self::Fixed => "fixed",
            Self::FixedFlat => "fixed_flat",
            Self::FixedRouted => "fixed_routed",
        }
    }
}

/// Names of all algorithms.
pub(crate) fn names() -> Vec<&'static str> {
    let together = std::iter::once(crate::form::TOGETHER);
    Algorithm::ALL.iter().map(|a| a.name()).chain(together).collect()
}
/// How a call is carried out.
#[derive(Clone, Debug)]
pub(crate) struct Strategy {
    pub(crate) algorithm: Algorithm,
    /// Trees of the tiers, outermost first.
    pub(crate) forms: Vec<Form>,
    /// Bytes of a piece of a long message.
    pub(crate) segment: u64,
    /// Pieces under way at a time where memory is needed for each.
    pub(crate) lanes: u64,
    /// Steps of all pieces that should be under way at a process.
    pub(crate) window: usize,
    /// How pieces are dealt out to trees.
    pub(crate) sharing: Sharing,
    /// Processes that carry shares for each part of the outermost tier.
    pub(crate) leaders: u32,
    /// Number of shares.
    pub(crate) shares: u32,
    pub(crate) cost: Cost,
    /// Nanoseconds more if connections of the wide area are new or have been idle.
    pub(crate) opening: u64,
}

impl Strategy {
    /// A way without trees.
    pub(crate) fn without_trees(algorithm: Algorithm, cost: Cost) -> Self {
        Self {
            algorithm,
            forms: Vec::new(),
            segment: u64::MAX,
            lanes: 1,
            window: 0,
            sharing: Sharing::Whole,
            leaders: 1,
            shares: 1,
            cost,
            opening: 0,
        }
    }

    /// The first tier that belongs to the trees: 1 where the leaders of the outermost tier meet in another way.
    pub(crate) fn first_tier(&self) -> usize {
        match self.algorithm {
            Algorithm::Flat
            | Algorithm::Routed
            | Algorithm::Ring
            | Algorithm::Doubling
            | Algorithm::Bruck
            | Algorithm::Halving
            | Algorithm::Split
            | Algorithm::Leaders
            | Algorithm::LeadersRouted
            | Algorithm::FixedFlat
            | Algorithm::FixedRouted => 1,
            _ => 0,
        }
    }

    /// Whether the trees of all tiers from one inwards are flat, so that each block crosses a tier at most once.
    pub(crate) fn is_flat(&self, from: usize) -> bool {
        self.forms.iter().skip(from).all(|form| matches!(form, Form::Flat))
    }

    /// How the largest of several blocks that are shares is cut.
    pub(crate) fn cut_of_blocks(&self, call: &Call, largest: u64) -> Cut {
        let one = Self {
            shares: 1,
            ..self.clone()
        };
        one.cut(call, largest)
    }

    /// How a message of `total` units along the trees is cut: all shares get as many pieces where there are enough
    /// units.
    pub(crate) fn cut(&self, call: &Call, total: u64) -> Cut {
        let (granule, shares) = (call.granule.max(1), self.shares);
        if shares > 1 {
            let units = (self.segment / call.unit_bytes.max(1)).max(1);
            let pieces = total.div_ceil(units).max(1).next_multiple_of(u64::from(shares));
            return Cut {
                total,
                piece: total.div_ceil(pieces).div_ceil(granule).saturating_mul(granule).max(1),
                lanes: self.lanes.max(1).next_multiple_of(u64::from(shares)),
                window: self.window,
                turns: Turns::default(),
            };
        }
        let units = (self.segment / call.unit_bytes.max(1))
            .max(1)
            .div_ceil(granule)
            .saturating_mul(granule);
        let piece = if total <= units.saturating_add(units / 2) {
            total.max(1)
        } else {
            units
        };
        Cut {
            total,
            piece,
            lanes: self.lanes.max(1),
            window: self.window,
            turns: Turns::default(),
        }
    }
}
