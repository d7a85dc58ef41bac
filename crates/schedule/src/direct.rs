// SPDX-License-Identifier: Apache-2.0
//! Short blocks of sites of one or two processes: each its own message to or from the process that the tree between
//! sites has for the site's leader; as in the tree where there is time for it: in the root's site, and in those that
//! act for others.
//!
//! A tree puts the blocks of a site into one message and pays for it with the way inside that site, before or after the
//! slow one. Where the one message saved costs less than this way takes, it is quicker not to. No block crosses a slow
//! link more often for it.

use crate::amount::Cost;
use crate::choose::Question;
use crate::cost::{Council, Flow, Phase};
use crate::form::Form;
use crate::row::BlockRow;
use crate::star;
use crate::step::Rank;
use crate::straight;
use crate::strategy::{Algorithm, Strategy};
use crate::tree::{Child, Family};
use crate::{Bytes, Call, Messages, Network};
use isthmus_topology::Level;

/// Most processes: everybody else needs a connection to every root.
const MOST: u32 = 64;
/// Most processes of a site: messages over slow links at most double.
const OF_SITE: u32 = 2;

/// This way, where it costs less than the tree.
pub(crate) fn candidate(question: &Question, network: &Network, way: Flow, tree: &Strategy) -> Option<Strategy> {
    if network.tiers() < 2 || network.level(0) != Level::WideArea || question.bytes() >= star::LONG {
        return None;
    }
    if network.size() > MOST || network.clusters(1) < 2 {
        return None;
    }
    if (0..network.clusters(1)).any(|site| network.span(1, site).len() as u32 > OF_SITE) {
        return None;
    }
    let mut strategy = Strategy::without_trees(Algorithm::Direct, cost(question, network, way, tree));
    strategy.forms.clone_from(&tree.forms);
    // Unequal ones of a site that are not handed on in a tree either go apart.
    strategy.segment = straight::SHORT / u64::from(OF_SITE) + 1;
    (strategy.cost.total() < tree.cost.total()).then_some(strategy)
}

/// The tree between sites with all its messages, and what its top does inside its own site while it waits for them.
fn cost(question: &Question, network: &Network, way: Flow, tree: &Strategy) -> Cost {
    let block = question.bytes();
    let form = |tier: usize| tree.forms.get(tier).unwrap_or(&Form::Flat);
    let phase = |tier: usize| {
        let below = u64::from(network.size()) / u64::from(network.clusters(tier + 1).max(1));
        let bytes = |members: u32| block.saturating_mul(u64::from(members)).saturating_mul(below.max(1));
        Council::largest(network, tier).tree(form(tier), way, &bytes)
    };
    let inside: u64 = (1..network.tiers()).map(|tier| phase(tier).process).sum();
    let link = network.link(0);
    let more = link.send.at(block).max(link.receive.at(block));
    let more = more.saturating_mul(u64::from((OF_SITE - 1) * network.clusters(1)));
    let own = Phase::of_process("more messages, and those inside", inside.saturating_add(more));
    Cost::pipeline(&[phase(0), own], 1, 1)
}

impl Family {
    /// The neighbours of a process where sites that act for no other need no leader.
    pub(crate) fn direct(network: &Network, root: Rank, me: Rank, forms: &[Form]) -> Self {
        let mut family = Self::new(network, root, me, 0, forms);
        let site = network.cluster_of(1, family.position);
        if let Some(parent) = ahead(network, root, site, forms) {
            return Self {
                parent: Some(parent),
                start: family.position,
                end: family.position + 1,
                children: Vec::new(),
                outer: Some(0),
                ..family
            };
        }
        let (far, near) = family.children.split_at(family.outer.unwrap_or(0));
        let each = |child: &Child| {
            let site = network.cluster_of(1, child.start);
            let ends = network.span(1, site) == (child.start..child.end);
            let alone = (child.start..child.end).map(|position| Child {
                rank: network.rank_at(position),
                start: position,
                end: position + 1,
                left: child.left,
            });
            if ends { alone.collect() } else { vec![*child] }
        };
        let mut children: Vec<Child> = far.iter().flat_map(each).collect();
        family.outer = family.outer.map(|_| children.len());
        children.extend_from_slice(near);
        family.children = children;
        family
    }
}

/// Whom all members of a site send to or receive from, if it acts for no other and is not the root's.
fn ahead(network: &Network, root: Rank, site: u32, forms: &[Form]) -> Option<Rank> {
    let leader = network.rank_at(network.leader(1, site, network.position_of(root)));
    let family = Family::new(network, root, leader, 0, forms);
    family.parent.filter(|_| family.outer == Some(0))
}

/// One message for each process of sites that act for no other, and those of the tree elsewhere.
pub(crate) fn messages(call: &Call, network: &Network, strategy: &Strategy) -> Messages {
    let home = network.cluster_of(1, network.position_of(call.root));
    let sites = (0..network.clusters(1)).map(|site| {
        let span = network.span(1, site);
        match ahead(network, call.root, site, &strategy.forms) {
            Some(_) => Messages::default().and(network.level(0), span.len() as u64),
            None => Messages::of_trees_of(network, 1, span).and(network.level(0), u64::from(site != home)),
        }
    });
    sites.fold(Messages::default(), Messages::plus)
}

/// Every block once per tier that it crosses, where nobody hands it on between sites.
pub(crate) fn bytes(call: &Call, network: &Network, strategy: &Strategy) -> Option<Bytes> {
    let home = network.span(1, network.cluster_of(1, network.position_of(call.root)));
    let row = BlockRow::new(&call.blocks, network, 0);
    let far = row.length(0..network.size()) - row.length(home.clone());
    let inside = Bytes::of_blocks_of(network, 1, call.root, &row, call.unit_bytes, home);
    let all = inside.and(network.level(0), far.saturating_mul(call.unit_bytes));
    strategy.is_flat(0).then_some(all)
}
