// SPDX-License-Identifier: Apache-2.0
//! Who talks to whom: trees inside one council, and their composition over all tiers of a shape.
//!
//! A *council* is the leaders of the parts of one cluster: the processes that talk at one tier. Its tree has a
//! [`Form`]. Subtrees are intervals, so gathered data stay together and reductions stay in order, for any root and
//! number of members.
//!
//! A [`Family`] joins the trees of all tiers that a process takes part in: one parent, its children, slow tiers first.

use crate::Network;
use crate::form::Form;
use crate::routes::Ways;
use crate::script::Piece;
use crate::share::Share;
use crate::step::Rank;
use crate::strategy::{Algorithm, Strategy};
use std::ops::Range;
use std::sync::Arc;

/// A child of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Child {
    /// Its rank.
    pub(crate) rank: Rank,
    /// Positions of its subtree.
    pub(crate) start: u32,
    /// End of them.
    pub(crate) end: u32,
    /// Whether they are left of (below) everything that the parent gets from later children.
    pub(crate) left: bool,
}

/// The place of a process among those of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    /// Place of the one who acts for the node.
    pub(crate) leader: Rank,
    /// Positions of its processes: the first, and the one behind the last.
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Whether that is this process.
    pub(crate) leads: bool,
}

/// A process's neighbours in the tree over all tiers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Family {
    /// Own position.
    pub(crate) position: u32,
    /// Whom it acts under; none at the root.
    pub(crate) parent: Option<Rank>,
    /// Positions of its own subtree.
    pub(crate) start: u32,
    /// End of them.
    pub(crate) end: u32,
    /// Children in the order in which a broadcast serves them: slow tiers first, large subtrees first. In the reverse
    /// order each subtree is adjacent to what has been combined before it.
    pub(crate) children: Vec<Child>,
    /// How many of the children, the first ones, are at the outermost tier; none where the process has no neighbours
    /// there.
    pub(crate) outer: Option<usize>,
    /// Its place among the processes of its node, where these take steps together instead of sending messages: then
    /// `parent` and `children` are on other nodes, or the parent is the one who acts for the node.
    pub(crate) seat: Option<Seat>,
}

impl Family {
    /// The tree inside each cluster of depth `from` (0: one tree over the whole group). The root, where it is a member,
    /// and else the first member is at the top. `forms` has the form of each tier's trees.
    pub(crate) fn new(network: &Network, root: Rank, me: Rank, from: usize, forms: &[Form]) -> Self {
        Self::of_share(network, &Share::whole(root), me, from, forms)
    }

    /// The same for one share of a message.
    pub(crate) fn of_share(network: &Network, share: &Share, me: Rank, from: usize, forms: &[Form]) -> Self {
        let position = network.position_of(me);
        let whole = network.span(from, network.cluster_of(from, position));
        let mut family = Self {
            position,
            parent: None,
            start: whole.start,
            end: whole.end,
            children: Vec::new(),
            outer: None,
            seat: None,
        };
        for tier in from..network.tiers() {
            let part = network.cluster_of(tier + 1, position);
            if share.acting(network, tier, part) != position {
                continue;
            }
            match share.via {
                _ if is_last(forms, tier) => {
                    let leader = share.leader(network, tier, network.cluster_of(tier, position));
                    family.take_seat(network, tier, leader);
                }
                Some(via) if tier == 0 => family.join_relay(network, share, via),
                _ => family.join_council(network, share, tier, part, forms.get(tier).unwrap_or(&Form::Flat)),
            }
            if tier == 0 && (family.parent.is_some() || !family.children.is_empty()) {
                family.outer = Some(family.children.len());
            }
        }
        family
    }

    /// The trees of a strategy.
    pub(crate) fn of(strategy: &Strategy, network: &Network, root: Rank, me: Rank) -> Self {
        match strategy.algorithm {
            Algorithm::Direct => Self::direct(network, root, me, &strategy.forms),
            _ => Self::new(network, root, me, strategy.first_tier(), &strategy.forms),
        }
    }

    /// The outermost tier where one part serves the others. Their positions do not count: neither blocks nor order go
    /// this way.
    fn join_relay(&mut self, network: &Network, share: &Share, via: u32) {
        let top = network.cluster_of(1, network.position_of(share.root));
        let me = network.cluster_of(1, self.position);
        let leader = |part: u32| network.rank_at(share.leader(network, 1, part));
        let own = network.span(1, me);
        (self.start, self.end) = (own.start, own.end);
        let served = |part: u32| {
            let span = network.span(1, part);
            Child {
                rank: leader(part),
                start: span.start,
                end: span.end,
                left: span.start < self.position,
            }
        };
        if me == top {
            self.children.push(served(via));
        } else if me == via {
            self.parent = Some(leader(top));
            let others = (0..network.clusters(1)).filter(|&part| part != top && part != via);
            self.children.extend(others.map(served));
        } else {
            self.parent = Some(leader(via));
        }
    }

    fn join_council(&mut self, network: &Network, share: &Share, tier: usize, part: u32, form: &Form) {
        let cluster = network.cluster_of(tier, self.position);
        let parts = network.parts(tier, cluster);
        let top = share.leader(network, tier, cluster);
        let mut chief = network.cluster_of(tier + 1, top) - parts.start;
        let me = part - parts.start;
        let leader = |i: u32| network.rank_at(share.acting(network, tier, parts.start + i));
        let start = |members: &Range<u32>| network.span(tier + 1, parts.start + members.start).start;
        let end = |members: &Range<u32>| network.span(tier + 1, parts.start + members.end - 1).end;
        let (mut interval, mut handed) = (0..parts.end - parts.start, Vec::new());
        while interval.len() > 1 {
            let rest = form.split(&interval, chief, &mut handed);
            if me == chief {
                self.children.extend(handed.iter().map(|part| Child {
                    rank: leader(part.first),
                    start: start(&part.members),
                    end: end(&part.members),
                    left: start(&part.members) < self.position,
                }));
            }
            interval = rest;
            if let Some(part) = handed.drain(..).find(|part| part.members.contains(&me)) {
                self.parent = Some(leader(chief));
                (self.start, self.end) = (start(&part.members), end(&part.members));
                (interval, chief) = (part.members, part.first);
            }
        }
    }

    /// The innermost tier as one step together: of a node with several processes, `leader` (a position) is at the top.
    fn take_seat(&mut self, network: &Network, tier: usize, leader: u32) {
        let span = network.span(tier, network.cluster_of(tier, self.position));
        if span.len() < 2 {
            return;
        }
        let leads = leader == self.position;
        self.seat = Some(Seat {
            leader: leader - span.start,
            start: span.start,
            end: span.end,
            leads,
        });
        if !leads {
            self.parent = Some(network.rank_at(leader));
            (self.start, self.end) = (self.position, self.position + 1);
        }
    }

    /// True for a process that acts for no other.
    pub(crate) fn is_leaf(&self) -> bool {
        self.children.is_empty() && !self.seat.is_some_and(|seat| seat.leads)
    }
}

/// Whether trees of these forms end in steps together.
pub(crate) fn is_last(forms: &[Form], tier: usize) -> bool {
    tier + 1 == forms.len() && matches!(forms.last(), Some(Form::Together))
}

/// The leaders of the outermost tier's parts, seen by one of them.
#[derive(Clone, Debug)]
pub(crate) struct Council {
    network: Arc<Network>,
    /// Own index.
    pub(crate) index: u32,
    /// Number of members.
    pub(crate) size: u32,
    /// Ways of items through others, where items take them.
    ways: Option<Arc<Ways>>,
}

/// What a member does when items come to all: one is everybody's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// Sends the item of a member, its own or one that it has received, to another member.
    Send { to: u32, item: u32 },
    /// Receives the item of a member from that one, or from one on the way.
    Receive { from: u32, item: u32 },
}

impl Council {
    /// The council of the outermost tier; each part is led by its first member. A group without tiers: one member.
    pub(crate) fn outermost(network: &Arc<Network>, me: Rank) -> Self {
        let size = if network.tiers() == 0 { 1 } else { network.clusters(1) };
        Self {
            index: network.cluster_of(1, network.position_of(me)),
            size,
            network: Arc::clone(network),
            ways: None,
        }
    }

    /// The same where items go as an algorithm says.
    pub(crate) fn meeting(network: &Arc<Network>, me: Rank, algorithm: Algorithm) -> Self {
        let ways = match algorithm {
            Algorithm::Routed | Algorithm::FixedRouted => network.ways(),
            Algorithm::Ring => network.ring(),
            _ => None,
        };
        Self {
            ways: ways.cloned(),
            ..Self::outermost(network, me)
        }
    }

    /// What is done so that everybody's item comes to everybody, or (`upwards`) to those behind him. An item is sent on
    /// after it is received.
    pub(crate) fn each_move(&self, upwards: bool, mut act: impl FnMut(Move)) {
        let (me, k) = (self.index, self.size);
        let Some(ways) = &self.ways else {
            for (to, from) in self.pairs() {
                if !upwards || to > me {
                    act(Move::Send { to, item: me });
                }
                if !upwards || from < me {
                    act(Move::Receive { from, item: from });
                }
            }
            return;
        };
        let wanted = |item: u32, by: u32| !upwards || (item + 1..k).any(|to| ways.passes(item, by, to));
        for item in (0..k).map(|d| (me + k - d) % k) {
            if item != me && wanted(item, me) {
                let from = ways.before(item, me);
                act(Move::Receive { from, item });
            }
            for to in ways.after(item, me).filter(|&to| wanted(item, to)) {
                act(Move::Send { to, item });
            }
        }
    }

    /// Tells the messages about the item of a member from those about others.
    pub(crate) fn about(&self, piece: &Piece, item: u32) -> Piece {
        let (index, of) = self.number(item);
        piece.item(index, of)
    }

    /// The number of the messages about a member's item among those between the same two members, and how many there
    /// may be.
    pub(crate) fn number(&self, item: u32) -> (u64, u64) {
        match self.ways {
            Some(_) => (u64::from(item), u64::from(self.size)),
            None => (0, 1),
        }
    }

    /// Rank of a member.
    pub(crate) fn rank(&self, index: u32) -> Rank {
        self.network.rank_at(self.network.span(1, index).start)
    }

    /// Positions that a member acts for.
    pub(crate) fn span(&self, index: u32) -> Range<u32> {
        self.network.span(1, index)
    }

    /// The other members as pairs (send to, receive from), in an order in which nobody is asked by all at once and
    /// synchronous sends cannot wait for each other in a circle.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let (i, k) = (self.index, self.size);
        (1..k).map(move |d| ((i + d) % k, (i + k - d) % k))
    }
}
