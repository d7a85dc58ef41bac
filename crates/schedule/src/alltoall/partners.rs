// SPDX-License-Identifier: Apache-2.0
//! **Alltoall with partners: the processes of a node bring what they have for a process of another site to one of them,
//! who sends it all.**
//!
//! | | |
//! |---|---|
//! | messages | over the wide area and inside sites one from each process to each; inside nodes one more per block that another process of the node sends |
//! | trips | wide area 1, node 1 |
//! | bytes | every block crosses the wide area once: the minimum; (g − 1) / g of those for other sites pass the memory of a node of g once more |
//! | connections | between two sites nodes × processes instead of processes × processes: few long streams share a slow link better than many short ones |
//! | restrictions | equal blocks; nodes of several processes, sites of at most 48 |
//! | paper | pacx-mpi-optimized-algorithms (few processes talk to other machines), with every process of a node for some of the receivers |
//!
//! Who sends to the process with index j in its site: the one with index j mod g in its node. Blocks are not put
//! together: they follow each other between the same two processes, and are received where they belong.

use super::pairwise::{self, Given};
use crate::amount::Cost;
use crate::choose::Question;
use crate::cost::{self, Phase};
use crate::script::{Kind, Piece, Script};
use crate::short::OwnBlocks;
use crate::step::{Action, After, Buffer, Plan, Rank, Slice};
use crate::strategy::{Algorithm, Strategy};
use crate::{Call, Messages, Network};
use isthmus_topology::Level;
use std::ops::Range;
use std::sync::Arc;

/// Processes of a site up to which the steps for one other site fit into an executor's window.
const LARGEST: usize = 48;

pub(super) fn plan(call: &Call, network: &Arc<Network>, me: Rank, block: u64) -> Box<dyn Plan> {
    let mut script = Script::default();
    let given = pairwise::given(&mut script, call, network);
    let member = Member::new(network, me, block, given);
    let site = network.cluster_of(1, member.position);
    let near = |peer: Rank, _| network.cluster_of(1, network.position_of(peer)) == site;
    let blocks = OwnBlocks::alike(&call.blocks);
    script.share(sharers(network, block));
    pairwise::write(&mut script, network, me, blocks, &member.given, near);
    let sites = network.clusters(1);
    for distance in 1..sites {
        member.send(&mut script, network.span(1, (site + distance) % sites));
        member.receive(&mut script, network.span(1, (site + sites - distance) % sites));
    }
    Box::new(script)
}

/// Where several processes of a node have something for other sites.
pub(super) fn strategy(question: &Question, network: &Network) -> Option<Strategy> {
    if !possible(network) {
        return None;
    }
    let (node, block) = (network.tiers() - 1, question.bytes());
    let all = u64::from(network.size());
    let far = all - all / u64::from(network.clusters(1));
    let link = network.link(node);
    let each = link.send.at(block).saturating_add(link.receive.at(block));
    let handing = Phase::of_process("handing over in nodes", each.saturating_mul(far));
    let cost = Cost::pipeline(
        &[cost::pairwise(network, block, u64::from(streams(network))), handing],
        1,
        1,
    );
    Some(Strategy::without_trees(Algorithm::Partners, cost))
}

fn possible(network: &Network) -> bool {
    let sites = || (0..network.clusters(1)).map(|site| network.span(1, site).len());
    network.tiers() > 1
        && network.level(0) == Level::WideArea
        && network.clusters(1) > 1
        && network.clusters(network.tiers() - 1) < network.size()
        && sites().all(|processes| processes <= LARGEST)
}

/// Pairs of processes that send from one site to another at the same time, if blocks are worth pacing.
fn sharers(network: &Network, block: u64) -> u32 {
    if block < cost::STREAM { 1 } else { streams(network) }
}

/// Pairs of processes that send from one site to another: from each node one for each receiver.
fn streams(network: &Network) -> u32 {
    let sites = || (0..network.clusters(1)).map(|site| network.span(1, site));
    let nodes = |site: Range<u32>| {
        let first = |position: &u32| node_of(network, *position).start == *position;
        site.filter(first).count()
    };
    let (nodes, receivers) = (sites().map(nodes).max(), sites().map(|site| site.len()).max());
    (nodes.unwrap_or(1) * receivers.unwrap_or(1)) as u32
}

/// One process.
struct Member<'a> {
    network: &'a Network,
    position: u32,
    /// Positions of its node.
    node: Range<u32>,
    block: u64,
    given: Given,
}

impl<'a> Member<'a> {
    fn new(network: &'a Network, me: Rank, block: u64, given: Given) -> Self {
        let position = network.position_of(me);
        Self {
            network,
            position,
            node: node_of(network, position),
            block,
            given,
        }
    }

    fn slice(&self, buffer: Buffer, place: u64) -> Slice {
        Slice {
            buffer,
            offset: place * self.block,
            length: self.block,
        }
    }

    /// The own blocks for a site, and those of the others in the node whose partner this process is.
    fn send(&self, script: &mut Script, there: Range<u32>) {
        let size = there.len() as u32;
        // Everybody begins with another receiver.
        let first = self.position - self.node.start;
        for index in (0..size).map(|i| (i + first) % size) {
            let (target, rank) = (there.start + index, self.network.rank_at(there.start + index));
            let partner = partner(&self.node, index);
            let own = self.slice(self.given.buffer, u64::from(rank));
            if partner == self.position {
                self.carry(script, target, own);
            } else {
                let to = self.network.rank_at(partner);
                let slot = Piece::numbered(u64::from(target)).slot(Kind::Up);
                script.push(Action::Send { to, data: own, slot }, self.given.ready.clone());
            }
        }
    }

    /// Sends a receiver what all processes of the node have for it, the own block first.
    fn carry(&self, script: &mut Script, target: u32, own: Slice) {
        let (to, size) = (self.network.rank_at(target), self.node.len() as u32);
        let index = self.position - self.node.start;
        let sent = |number: u32| Piece::numbered(u64::from(number)).slot(Kind::Exchange);
        let (data, slot) = (own, sent(index));
        script.push(Action::Send { to, data, slot }, self.given.ready.clone());
        let memory = script.memory(u64::from(size - 1) * self.block);
        for number in 1..size {
            let from = (index + size - number) % size;
            let data = self.slice(memory, u64::from(number - 1));
            let slot = Piece::numbered(u64::from(target)).slot(Kind::Up);
            let giver = self.network.rank_at(self.node.start + from);
            let come = script.push(
                Action::Receive {
                    from: giver,
                    data,
                    slot,
                },
                After::NONE,
            );
            let slot = sent(from);
            script.push(Action::Send { to, data, slot }, After::from_iter([come]));
        }
    }

    /// What comes from the processes of a site, node by node from the partner there.
    fn receive(&self, script: &mut Script, there: Range<u32>) {
        let site = self.network.span(1, self.network.cluster_of(1, self.position));
        let index = self.position - site.start;
        for source in there {
            let node = node_of(self.network, source);
            let from = self.network.rank_at(partner(&node, index));
            let data = self.slice(Buffer::Recv, u64::from(self.network.rank_at(source)));
            let slot = Piece::numbered(u64::from(source - node.start)).slot(Kind::Exchange);
            script.push(Action::Receive { from, data, slot }, self.given.ready.clone());
        }
    }
}

/// Positions of the node of a process.
fn node_of(network: &Network, position: u32) -> Range<u32> {
    let depth = network.tiers() - 1;
    network.span(depth, network.cluster_of(depth, position))
}

/// Who in a node sends to the process with an index in its site.
fn partner(node: &Range<u32>, index: u32) -> u32 {
    node.start + index % node.len() as u32
}

/// One from each process to each, and one more per block that is handed over.
pub(super) fn messages(network: &Network) -> Messages {
    let depth = network.tiers() - 1;
    let mut handed = 0;
    for node in (0..network.clusters(depth)).map(|node| network.span(depth, node)) {
        let site = network.span(1, network.cluster_of(1, node.start));
        let far = u64::from(network.size()) - site.len() as u64;
        handed += far * (node.len() as u64 - 1);
    }
    Messages::of_pairs(network).and(network.level(depth), handed)
}
