// SPDX-License-Identifier: Apache-2.0
//! Long equal blocks between a root and everybody: each goes its own way, in pieces, and nobody keeps those of others.
//!
//! A tree hands on the blocks of a site when its leader has all of them. Straight ways need no memory and begin to
//! spread with the first piece. Where one process does not fill the links between sites, some processes of the root's
//! site, its *carriers*, send or receive for it.

use crate::amount::Cost;
use crate::choose::Question;
use crate::cost::{Flow, Phase, crowding};
use crate::script::{Cut, Kind, Script};
use crate::share::member;
use crate::shares;
use crate::step::{Buffer, Plan, Rank, Slice};
use crate::strategy::{Algorithm, Sharing, Strategy};
use crate::{Blocks, Bytes, Call, Messages, Network, Operation};
use isthmus_topology::Level;

/// Most processes: everybody knows the order in which the root serves them.
const MOST: u32 = 256;
/// Bytes of a block from which on it goes its own way in pieces.
pub(crate) const LONG: u64 = 16 << 10;
/// Bytes of a piece: much more than a message costs, and little beside what slow links hold.
const SEGMENT: u64 = 256 << 10;
/// Pieces that a carrier has memory for.
const LANES: u64 = 16;

/// The ways to do so, with few carriers first.
pub(crate) fn candidates(question: &Question, network: &Network, way: Flow) -> Vec<Strategy> {
    let Some(block) = question.bytes.filter(|&block| block >= LONG) else {
        return Vec::new();
    };
    if network.tiers() < 2 || network.size() > MOST || network.clusters(1) < 2 {
        return Vec::new();
    }
    let leaders = shares::leaders(question, network, MOST);
    let strategy = |leaders| {
        let mut strategy = Strategy::without_trees(Algorithm::Shared, cost(network, way, block, leaders));
        (strategy.leaders, strategy.sharing) = (leaders, Sharing::Whole);
        (strategy.segment, strategy.lanes) = (SEGMENT, LANES);
        strategy
    };
    leaders.into_iter().map(strategy).collect()
}

/// What the root does, what the fullest link carries, and the way of the last piece.
fn cost(network: &Network, way: Flow, block: u64, leaders: u32) -> Cost {
    let all = u64::from(network.size());
    let near = |tier: usize| {
        let link = network.link(tier);
        match way {
            Flow::Down => link.send.at(block),
            Flow::Up | Flow::Combine => link.receive.at(block),
        }
    };
    // Of the members of each cluster those of other parts are served over its tier.
    let peers = |tier: usize| all / u64::from(network.clusters(tier)) - all / u64::from(network.clusters(tier + 1));
    let inside: u64 = (1..network.tiers())
        .map(|tier| peers(tier).saturating_mul(near(tier)))
        .sum();
    let (wide, inner) = (peers(0).saturating_mul(near(0)), near(network.tiers() - 1));
    let carriers = u64::from(leaders.max(1));
    let handed = peers(0).saturating_mul(inner).saturating_mul(carriers - 1) / carriers;
    let root = inside.saturating_add(wide / carriers).saturating_add(handed);
    let piece = block.min(SEGMENT);
    let members = all / u64::from(network.clusters(1));
    let sites = network.clusters(1);
    let pairs = (0..sites).flat_map(|a| (0..sites).filter(move |&b| b != a).map(move |b| (a, b)));
    let links = pairs.take(64).map(|pair| network.outer(pair.0, pair.1));
    let (mut fullest, mut last) = (0, 0);
    for link in links {
        fullest = fullest.max(link.gap.at(block).saturating_mul(members));
        last = last.max(link.latency + link.gap.at(piece) + link.send.at(piece) + link.receive.at(piece));
    }
    Cost::pipeline(
        &[
            Phase::of_process("the root, or the link to the largest site", root.max(fullest)),
            Phase::of_process("the way of the last piece", last),
        ],
        1,
        1,
    )
}

/// The same for blocks each of which is one message of its owner: those of a site are as many streams on its link.
pub(crate) fn cost_of_streams(network: &Network, way: Flow, block: u64) -> Cost {
    let streams = u64::from(network.size() / network.clusters(1).max(1));
    let slower = |bytes: u64| bytes.saturating_add(crowding(bytes, streams));
    cost(network, way, slower(block), 1)
}

/// All positions, sites in turn, so that all links are busy.
pub(crate) fn in_turn(network: &Network) -> impl Iterator<Item = u32> {
    let spans = || (0..network.clusters(1)).map(|site| network.span(1, site));
    let longest = spans().map(|span| span.len() as u32).max().unwrap_or(0);
    let turn = move |index: u32| spans().map(move |span| span.start + index..span.end);
    (0..longest).flat_map(move |index| turn(index).filter_map(|mut rest| rest.next()))
}

/// Which way every block goes.
struct Star<'a> {
    network: &'a Network,
    root: u32,
    leaders: u32,
}

impl<'a> Star<'a> {
    fn new(call: &Call, network: &'a Network, strategy: &Strategy) -> Self {
        Self {
            network,
            root: network.position_of(call.root),
            leaders: strategy.leaders.max(1),
        }
    }

    /// The positions of all others in the order in which the root serves them.
    fn order(&self) -> Vec<u32> {
        in_turn(self.network)
            .filter(|&position| position != self.root)
            .collect()
    }

    /// Who sends or receives in the root's place what is for a process of another site.
    fn carrier(&self, position: u32) -> Option<u32> {
        let site = self.network.cluster_of(1, self.root);
        let there = self.network.cluster_of(1, position);
        if site == there || self.leaders == 1 {
            return None;
        }
        let index = position - self.network.span(1, there).start;
        let carrier = member(self.network, 1, site, index % self.leaders);
        (carrier != self.root).then_some(carrier)
    }

    /// The level at which two processes are apart.
    fn level(&self, a: u32, b: u32) -> Level {
        let apart = |tier: &usize| self.network.cluster_of(tier + 1, a) != self.network.cluster_of(tier + 1, b);
        self.network.level((0..self.network.tiers()).find(apart).unwrap_or(0))
    }
}

/// The part of a process in a gather or scatter.
pub(crate) fn plan(call: &Call, network: &Network, me: Rank, strategy: &Strategy) -> Box<dyn Plan> {
    let star = Star::new(call, network, strategy);
    let (order, position) = (star.order(), network.position_of(me));
    let carriers: Vec<Option<u32>> = order.iter().map(|&to| star.carrier(to)).collect();
    let (block, cut) = (call.blocks.size(me), strategy.cut(call, call.blocks.size(me)));
    let up = call.operation == Operation::Gather;
    // A number for each piece of each block.
    let others = order.len() as u64;
    let numbers = Cut {
        total: cut.pieces() * others,
        piece: 1,
        lanes: cut.lanes.max(1).next_multiple_of(others),
        ..cut
    };
    let mut script = Script::default();
    if position == star.root {
        own_block(&mut script, call, me, block, up);
    }
    let spares = carriers.iter().map(|&carrier| u64::from(carrier == Some(position)));
    let places = numbers.places_of(&mut script, spares, cut.piece.min(cut.total));
    let (root, root_rank) = (star.root, call.root);
    let rank_of: Vec<Rank> = order.iter().map(|&p| network.rank_at(p)).collect();
    let carrier_of: Vec<Option<Rank>> = carriers.iter().map(|c| c.map(|p| network.rank_at(p))).collect();
    script.pieces(numbers, move |script, number| {
        let which = (number.number % others) as usize;
        let from = number.number / others * cut.piece;
        let length = (block - from).min(cut.piece);
        let (rank, carrier) = (rank_of[which], carrier_of[which]);
        let slot = number.slot(Kind::Share);
        if position == root {
            let data = Slice {
                buffer: if up { Buffer::Recv } else { Buffer::Send },
                offset: block * u64::from(rank) + from,
                length,
            };
            match up {
                true => script.receive(carrier.unwrap_or(rank), data, slot),
                false => script.send(carrier.unwrap_or(rank), data, slot),
            };
        } else if carrier == Some(me) {
            let place = Slice {
                length,
                ..places.place(&number, 0)
            };
            let (source, target) = if up { (rank, root_rank) } else { (root_rank, rank) };
            script.receive(source, place, slot);
            script.send(target, place, slot);
        } else if me == rank {
            let data = Slice {
                buffer: if up { Buffer::Send } else { Buffer::Recv },
                offset: from,
                length,
            };
            match up {
                true => script.send(carrier.unwrap_or(root_rank), data, slot),
                false => script.receive(carrier.unwrap_or(root_rank), data, slot),
            };
        }
    })
}

/// The root's own block.
fn own_block(script: &mut Script, call: &Call, me: Rank, block: u64, up: bool) {
    if call.in_place {
        return;
    }
    let slice = |buffer, offset| Slice {
        buffer,
        offset,
        length: block,
    };
    let there = block * u64::from(me);
    match up {
        true => script.copy_apart(slice(Buffer::Send, 0), slice(Buffer::Recv, there)),
        false => script.copy_apart(slice(Buffer::Send, there), slice(Buffer::Recv, 0)),
    }
}

/// Messages of all pieces.
pub(crate) fn messages(call: &Call, network: &Network, strategy: &Strategy) -> Option<Messages> {
    let Blocks::Equal(block) = call.blocks else { return None };
    let (star, pieces) = (Star::new(call, network, strategy), strategy.cut(call, block).pieces());
    Some(star.crossings().times(pieces))
}

/// Every block once on its way.
pub(crate) fn bytes(call: &Call, network: &Network, strategy: &Strategy) -> Option<Bytes> {
    let Blocks::Equal(block) = call.blocks else { return None };
    let star = Star::new(call, network, strategy);
    Some(Bytes::of(star.crossings(), call.bytes(block)))
}

impl Star<'_> {
    /// Messages of one piece of each block.
    fn crossings(&self) -> Messages {
        let mut messages = Messages::default();
        for position in self.order() {
            let near = self.carrier(position).unwrap_or(self.root);
            messages = messages.and(self.level(near, position), 1);
            if near != self.root {
                messages = messages.and(self.level(near, self.root), 1);
            }
        }
        messages
    }
}
