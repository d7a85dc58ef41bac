// SPDX-License-Identifier: Apache-2.0
//! Shares: the pieces of a long message are dealt out to several trees, which use the links and the processes that one
//! tree leaves idle.
//!
//! Piece number i passes the tree of share i mod S. The trees differ in three things:
//! - who is at the top, where the operation leaves that open (allreduce: each part of the outermost tier for its share,
//!   and so contributions are combined in as many places as there are shares, and results spread from there);
//! - who acts for a cluster without the top: the share's *turn* counts through its machines first and then through
//!   their processes, so that several leaders of a site carry shares over the wide area;
//! - *via* whom the outermost tier is served: a top that would send every byte to each other part sends each share to
//!   one of them, who sends it on to the rest. Backwards, contributions to a share are combined at that part before
//!   they go on to the root.
//! - where every process is at the top of a tree, for its own block: the *carrier* of its cluster, who hands it to the
//!   other parts of the outermost tier. Few carriers make few long streams on the links between sites; many streams
//!   there are in each other's way.
//!
//! Everything else is the same for one tree and for many: steps of all pieces are in one plan, at every tier at once.

use crate::choose::Question;
use crate::cost::Flow;
use crate::meeting;
use crate::script::{Cut, Turns};
use crate::share::{Share, member};
use crate::step::Rank;
use crate::strategy::{Algorithm, Dealing, Sharing, Strategy};
use crate::tree::Family;
use crate::trees::{Load, Trees};
use crate::{Call, Network};
use isthmus_topology::{Level, Link};

/// Bytes of messages from which on sharing is worth thinking about.
const LONG: u64 = 16 << 10;
/// Most shares: a process makes its place in the trees of all of them.
const MOST: u32 = 256;
/// Leaders that are tried.
const LEADERS: [u32; 4] = [1, 2, 4, 8];

/// [`candidates`] for operations with a root.
pub(crate) fn given_top(trees: &Trees<'_>) -> Vec<Strategy> {
    let mut all = candidates(trees, Sharing::Dealt);
    all.extend(candidates(trees, Sharing::Relayed));
    all
}

/// The ways to share the pieces of long messages, with few leaders first. `trees` says what they are for.
pub(crate) fn candidates(trees: &Trees<'_>, sharing: Sharing) -> Vec<Strategy> {
    let (network, bytes) = (trees.network, trees.question.bytes());
    if network.tiers() == 0 || bytes < LONG || !(2..=meeting::MOST).contains(&network.clusters(1)) {
        return Vec::new();
    }
    let parts = network.clusters(1);
    let leaders = leaders(trees.question, network, MOST / parts);
    // Inside a node all processes use the same memory.
    if sharing != Sharing::Tops && network.level(0) == Level::Node {
        return Vec::new();
    }
    // With one leader there may be only one tree; two parts have none between them.
    let several = |leaders: &u32| match sharing {
        Sharing::Whole | Sharing::Tops => true,
        Sharing::Dealt => parts > 2 && *leaders > 1,
        Sharing::Relayed => parts > 2 || *leaders > 1,
    };
    let strategy = |leaders| {
        let trees = Trees {
            algorithm: Algorithm::Shared,
            dealing: Dealing { sharing, leaders },
            any_root: false,
            ..*trees
        };
        trees.strategy(&|_| Vec::new())
    };
    leaders.into_iter().filter(several).map(strategy).collect()
}

/// Most processes each of whose blocks goes along a tree of its own.
const MOST_BLOCKS: u32 = 256;
/// Bytes of all blocks from which on they do.
const LONG_BLOCKS: u64 = 64 << 10;

/// How blocks of all members travel along trees of their own, with some leaders of each site or others.
pub(crate) fn of_blocks(question: &Question, network: &Network, way: Flow) -> Vec<Strategy> {
    if network.tiers() == 0 || network.size() > MOST_BLOCKS || question.bytes() <= LONG_BLOCKS {
        return Vec::new();
    }
    let strategy = |leaders| {
        let trees = Trees {
            question,
            network,
            algorithm: Algorithm::Shared,
            flows: &[(way, Load::Piece)],
            cut: true,
            any_root: false,
            dealing: Dealing {
                sharing: Sharing::Tops,
                leaders,
            },
        };
        trees.strategy(&|_| Vec::new())
    };
    let leaders = leaders(question, network, MOST_BLOCKS);
    leaders.into_iter().map(strategy).collect()
}

/// Numbers of leaders of a part of the outermost tier that are tried; not more than `most`, or than the largest part
/// has members.
pub(crate) fn leaders(question: &Question, network: &Network, most: u32) -> Vec<u32> {
    let sizes = (0..network.clusters(1)).map(|part| network.span(1, part).len() as u32);
    let most = sizes.max().unwrap_or(1).min(most).max(1);
    let said = network
        .overrides()
        .about(question.operation, None, question.bytes())
        .leaders;
    match said {
        Some(leaders) => vec![leaders.clamp(1, most)],
        None => LEADERS.into_iter().filter(|&leaders| leaders <= most).collect(),
    }
}

/// The parts of [`ENTIRE`] with which ways that have a latency and take so long for all are through at the same time.
/// Ways that are too long to be of use get nothing. In whole numbers, so that all machines find the same.
fn even_out(ways: &[(u64, u64)]) -> Vec<u128> {
    let rate = |way: usize| (ENTIRE * ENTIRE / u128::from(ways[way].1.max(1))).max(1);
    let mut used: Vec<usize> = (0..ways.len()).collect();
    loop {
        // All end at the time t where the sum of (t - latency) / all is 1.
        let pace: u128 = used.iter().map(|&way| rate(way)).sum();
        let begun: u128 = used.iter().map(|&way| u128::from(ways[way].0) * rate(way)).sum();
        let end = (ENTIRE * ENTIRE + begun) / pace.max(1);
        let before = used.len();
        used.retain(|&way| u128::from(ways[way].0) < end);
        if used.len() == before {
            let share = |way: usize| match used.contains(&way) {
                true => (end - u128::from(ways[way].0)) * rate(way) / ENTIRE,
                false => 0,
            };
            return (0..ways.len()).map(share).collect();
        }
    }
}

/// What shares are parts of.
const ENTIRE: u128 = 1 << 32;

impl Strategy {
    /// The trees of a share. Where the order of operands counts nobody serves other parts: a subtree would not be an
    /// interval.
    fn share(&self, network: &Network, root: Rank, number: u32, ordered: bool) -> Share {
        let parts = if network.tiers() == 0 { 1 } else { network.clusters(1) };
        match self.sharing {
            Sharing::Whole => Share::whole(root),
            Sharing::Dealt => Share {
                turn: number,
                ..Share::whole(root)
            },
            Sharing::Relayed => {
                let own = network.cluster_of(1, network.position_of(root));
                let others = parts.saturating_sub(1).max(1);
                Share {
                    root,
                    turn: number / others,
                    via: (parts > 2 && !ordered).then(|| (own + 1 + number % others) % parts),
                    carrier: None,
                }
            }
            Sharing::Tops => {
                let turn = number / parts;
                Share {
                    root: network.rank_at(member(network, 1.min(network.tiers()), number % parts, turn)),
                    turn,
                    via: None,
                    carrier: None,
                }
            }
        }
    }

    /// A process's neighbours in the trees of each share.
    pub(crate) fn families(&self, network: &Network, root: Rank, me: Rank, ordered: bool) -> Families {
        let family = |number| {
            let share = self.share(network, root, number, ordered);
            Family::of_share(network, &share, me, self.first_tier(), &self.forms)
        };
        match self.shares {
            1 => Families::One(Family::of_share(
                network,
                &self.share(network, root, 0, ordered),
                me,
                self.first_tier(),
                &self.forms,
            )),
            shares => Families::Many((0..shares).map(family).collect()),
        }
    }
}

impl Strategy {
    /// How a message that goes from a root to all, or from all to a root, is cut. Where shares go through different
    /// sites, those with slower or longer ways get less, so that all are through at the same time.
    pub(crate) fn cut_in_shares(&self, call: &Call, network: &Network, total: u64, ordered: bool) -> Cut {
        let cut = self.cut(call, total);
        let parts = network.clusters(1.min(network.tiers()));
        let others = (parts as usize).saturating_sub(1);
        if self.sharing != Sharing::Relayed || ordered || !(2..=Turns::MOST).contains(&others) || total == 0 {
            return cut;
        }
        let own = network.cluster_of(1, network.position_of(call.root));
        let piece = call.bytes(cut.piece).max(1);
        // Of each way the latency, and the nanoseconds that a share of all takes on its slowest link.
        let way = |turn: usize| {
            let via = (own + 1 + turn as u32) % parts;
            let first = network.outer(own, via);
            let onward = (0..parts).filter(|&part| part != own && part != via);
            let onward: Vec<&Link> = onward.map(|part| network.outer(via, part)).collect();
            let last = onward.iter().map(|link| link.latency).max().unwrap_or(0);
            let gap = onward.iter().map(|link| link.gap.at(piece)).max().unwrap_or(0);
            let gap = gap.max(first.gap.at(piece)).max(1);
            let all = u128::from(gap) * u128::from(call.bytes(total)) / u128::from(piece);
            (
                first.latency.saturating_add(last),
                u64::try_from(all).unwrap_or(u64::MAX).max(1),
            )
        };
        let ways: Vec<(u64, u64)> = (0..others).map(way).collect();
        let turns = cut.pieces().div_ceil(others as u64);
        let granule = call.granule.max(1);
        let whole = |units: u64| units.div_ceil(granule).saturating_mul(granule);
        let units = |share: u128| whole((share * u128::from(total) / u128::from(turns) / ENTIRE) as u64);
        let mut lengths: Vec<u64> = even_out(&ways).into_iter().map(units).collect();
        // What rounding has taken away goes along with the largest.
        let missing = total.div_ceil(turns).saturating_sub(lengths.iter().sum());
        if let Some(length) = lengths.iter_mut().max() {
            *length = length.saturating_add(whole(missing));
        }
        Cut {
            piece: lengths.iter().copied().max().unwrap_or(cut.piece),
            turns: Turns::of(&lengths),
            ..cut
        }
    }

    /// A process's neighbours in the trees of all processes' blocks, by rank of their owners. As many processes of each
    /// site as there are leaders carry the blocks over, of a site with several machines those of their own machine
    /// where there are as many leaders. Where the order of operands counts everybody carries his own block: the subtree
    /// of another carrier would not be an interval.
    pub(crate) fn families_of_all(&self, network: &Network, me: Rank, ordered: bool) -> Box<[Family]> {
        let depth = 1.min(network.tiers());
        let mut families = vec![None; network.size() as usize];
        for part in 0..network.clusters(depth) {
            let (span, turns) = (network.span(depth, part), self.leaders.max(1));
            // Numbers go through machines first; of parts with unequal machines some come twice.
            let mut left = span.len();
            for number in 0.. {
                let position = member(network, depth, part, number);
                let family = &mut families[network.rank_at(position) as usize];
                if family.is_none() {
                    let turn = number % turns;
                    let share = Share {
                        root: network.rank_at(position),
                        turn,
                        via: None,
                        carrier: (!ordered).then(|| member(network, depth, part, turn)),
                    };
                    *family = Some(Family::of_share(network, &share, me, self.first_tier(), &self.forms));
                    left -= 1;
                }
                if left == 0 {
                    break;
                }
            }
        }
        families.into_iter().flatten().collect()
    }
}

/// A process's neighbours in all trees.
#[derive(Clone, Debug)]
pub(crate) enum Families {
    One(Family),
    Many(Box<[Family]>),
}

impl Families {
    /// Those for a piece, by its number.
    pub(crate) fn of_piece(&self, number: u64) -> &Family {
        let all = self.all();
        &all[(number % all.len() as u64) as usize]
    }

    /// The tree of each share.
    pub(crate) fn all(&self) -> &[Family] {
        match self {
            Self::One(family) => std::slice::from_ref(family),
            Self::Many(all) => all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_topology::Shape;

    #[test]
    fn ways_are_through_at_the_same_time() {
        // In and out: milliseconds.
        let ends = |ways: &[(u64, u64)]| -> Vec<u64> {
            let ways: Vec<(u64, u64)> = ways.iter().map(|(l, a)| (l * 1_000_000, a * 1_000_000)).collect();
            let shares = even_out(&ways);
            let all: u128 = shares.iter().sum();
            assert!(all.abs_diff(ENTIRE) < 100, "{shares:?}");
            let used = ways.iter().zip(shares).filter(|(_, share)| *share > 0);
            let end =
                |((latency, all), share): (&(u64, u64), u128)| u128::from(*latency) + u128::from(*all) * share / ENTIRE;
            used.map(|way| ((end(way) + 500_000) / 1_000_000) as u64).collect()
        };
        // A long and a short way, a fast and a slow one.
        assert_eq!(ends(&[(30, 1450), (58, 1450)]), [769, 769]);
        assert_eq!(ends(&[(0, 100), (0, 300)]), [75, 75]);
        // Through before anything has come along the other one.
        assert_eq!(ends(&[(10, 100), (500, 100)]), [110]);
    }

    #[test]
    fn turns_go_through_machines_first_and_leaders_agree_at_all_depths() {
        let levels = [Level::WideArea, Level::LocalArea, Level::Node];
        let network = Network::plain(Shape::from_colours(&levels, 24, |rank, depth| match depth {
            0 => rank / 8,
            _ => rank / 4,
        }));
        let leaders = |turn| {
            let share = Share {
                turn,
                ..Share::whole(9)
            };
            (
                (0..3).map(|site| share.leader(&network, 1, site)).collect::<Vec<_>>(),
                (0..6)
                    .map(|machine| share.leader(&network, 2, machine))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(leaders(0), (vec![0, 9, 16], vec![0, 4, 9, 12, 16, 20]));
        assert_eq!(leaders(1), (vec![4, 9, 20], vec![1, 4, 9, 13, 17, 20]));
        assert_eq!(leaders(2), (vec![1, 9, 17], vec![1, 6, 9, 14, 17, 22]));
    }
}
