// SPDX-License-Identifier: Apache-2.0
//! The choice for gather and scatter, which differ in the direction only.

use crate::amount::Cost;
use crate::choose::Question;
use crate::cost::{Council, Flow};
use crate::form::Form;
use crate::row::BlockRow;
use crate::strategy::{Algorithm, Dealing, Strategy};
use crate::trees::{Load, Trees};
use crate::{Blocks, Bytes, Call, Messages, Network, apart, choose, direct, star};
use std::sync::Arc;

/// What may be done directly, given the tree, and in shares.
type Others = (
    fn(&Question, &Network, &Strategy) -> Vec<Strategy>,
    fn(&Question, &Network) -> Vec<Strategy>,
);

/// All candidates of gather or scatter. Only the tree may have steps together on nodes: the others have messages there
/// too.
pub(crate) fn candidates(question: &Question, network: &Network, way: Flow, (direct, shared): Others) -> Vec<Strategy> {
    let messages = Question {
        nodes: false,
        ..*question
    };
    let tree = blocks(question, network, way);
    let mut all = match question.nodes {
        true => direct(&messages, network, &blocks(&messages, network, way)),
        false => direct(question, network, &tree),
    };
    all.push(tree);
    all.extend(shared(&messages, network));
    all
}

/// The way of gather and scatter: a tree whose messages hold the blocks of subtrees.
pub(crate) fn blocks(question: &Question, network: &Network, way: Flow) -> Strategy {
    let Some(block) = question.bytes else {
        return unequal(question, network, way);
    };
    let trees = Trees {
        question,
        network,
        algorithm: Algorithm::Tree,
        flows: &[(way, Load::Blocks(block))],
        cut: false,
        any_root: true,
        dealing: Dealing::WHOLE,
    };
    trees.strategy(&|_| Vec::new())
}

/// One message for each subtree, and one for each block that goes apart. Long unequal blocks are not handed on, and not
/// all know which are.
pub(crate) fn messages(call: &Call, network: &Network) -> Option<Messages> {
    let strategy = choose::strategy(call, network);
    match strategy.algorithm {
        Algorithm::Shared => return star::messages(call, network, &strategy),
        Algorithm::Direct if call.blocks != Blocks::Equal(0) => {
            let apart = apart::Apart::of(call, network, &strategy).map_or(Some(0), |apart| apart.messages());
            return Some(direct::messages(call, network, &strategy).and(network.level(0), apart?));
        }
        _ => {}
    }
    let straight = |strategy: &Strategy| matches!(strategy.forms.first(), None | Some(Form::Flat));
    match call.blocks {
        Blocks::Equal(0) => Some(Messages::default()),
        Blocks::Equal(_) => Some(strategy.crossing(network, Messages::of_trees(network, 0))),
        _ if !straight(&strategy) => None,
        _ => {
            let trees = Messages::of_trees(network, 0);
            match apart::Apart::of(call, network, &strategy) {
                Some(apart) => Some(trees.and(network.level(0), apart.messages()?)),
                None => Some(trees),
            }
        }
    }
}

/// Every block once per tier that it crosses, where nobody hands it on within a tier.
pub(crate) fn bytes(call: &Call, network: &Network) -> Option<Bytes> {
    let strategy = choose::strategy(call, network);
    match strategy.algorithm {
        Algorithm::Shared => return star::bytes(call, network, &strategy),
        Algorithm::Direct => return direct::bytes(call, network, &strategy),
        _ => {}
    }
    let flat = strategy.is_flat(0);
    let row = BlockRow::new(&call.blocks, network, 0);
    flat.then(|| strategy.crossing(network, Bytes::of_blocks(network, 0, call.root, &row, call.unit_bytes)))
}

/// A tree for blocks of which nobody but the root knows the sizes: every tier flat, so that blocks are not handed on
/// for nothing, but for a quicker way between sites.
fn unequal(question: &Question, network: &Network, way: Flow) -> Strategy {
    let mut strategy = Strategy::without_trees(Algorithm::Tree, Cost::default());
    let mut phases = Vec::new();
    for tier in 0..network.tiers() {
        let council = Council::largest(network, tier);
        let routed = network.routes().filter(|_| tier == 0);
        let mut forms = vec![Form::Flat];
        forms.extend(routed.map(|routes| Form::Routed(Arc::clone(routes))));
        let about = network.overrides();
        let said = about.about(question.operation, Some(council.level()), question.bytes());
        let named = said
            .name
            .and_then(|name| Form::named(&name, council.postal_latency(question.bytes()), &forms));
        let forms = named.map_or(forms, |form| vec![form]);
        let below = u64::from(network.size()) / u64::from(network.clusters(tier + 1).max(1));
        let bytes = |members: u32| question.bytes() * u64::from(members) * below.max(1);
        let ways = forms.into_iter().map(|form| (council.tree(&form, way, &bytes), form));
        if let Some((phase, form)) = ways.min_by_key(|(phase, _)| phase.depth) {
            strategy.forms.push(form);
            phases.push(phase);
        }
    }
    strategy.cost = Cost::pipeline(&phases, 1, 1);
    strategy.segment = apart::length(question, network, way, blocks);
    strategy
}
