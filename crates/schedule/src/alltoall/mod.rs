// SPDX-License-Identifier: Apache-2.0
//! Alltoall, alltoallv and alltoallw.

mod bruck;
mod counts;
mod envoys;
mod leaders;
mod pairwise;
mod partners;
mod unequal;

pub(crate) use counts::plan as counts;
pub(crate) use pairwise::plan as straight;

use crate::choose::{self, Question};
use crate::script::Script;
use crate::short::OwnBlocks;
use crate::step::{Plan, Rank};
use crate::strategy::{Algorithm, Strategy};
use crate::{Blocks, Bytes, Call, Messages, Network, Operation};
use isthmus_topology::Level;
use std::sync::Arc;

pub(crate) fn plan(call: &Call, network: &Arc<Network>, me: Rank) -> Box<dyn Plan> {
    match call.blocks {
        Blocks::Equal(0) => Box::new(Script::default()),
        Blocks::Equal(n) => {
            let strategy = choose::strategy(&equal(call), network);
            match strategy.algorithm {
                Algorithm::Leaders | Algorithm::LeadersRouted | Algorithm::Bruck => {
                    leaders::plan(&equal(call), network, me, n)
                }
                Algorithm::Partners => partners::plan(&equal(call), network, me, n),
                Algorithm::Envoys => envoys::plan(&equal(call), network, me, n, strategy.segment),
                _ => pairwise::plan(&equal(call), network, me, OwnBlocks::alike(&call.blocks)),
            }
        }
        _ => unequal::plan(call, network, me),
    }
}

/// The call with equal blocks that it is.
fn equal(call: &Call) -> Call {
    Call {
        operation: Operation::Alltoall,
        ..call.clone()
    }
}

pub(crate) fn candidates(question: &Question, network: &Network) -> Vec<Strategy> {
    let asked = Question {
        bytes: question.bytes.or(Some(SUPPOSED)),
        ..*question
    };
    let wide = network.tiers() > 0 && network.level(0) == Level::WideArea;
    let mut all = match question.bytes.is_some() || wide {
        true => leaders::strategies(&asked, network),
        false => Vec::new(),
    };
    if question.bytes.is_none() {
        // Who hands on blocks in rounds must know their sizes.
        all.retain(|strategy| strategy.algorithm != Algorithm::Bruck);
    }
    if question.bytes.is_some() {
        all.extend(envoys::strategy(&asked, network));
        all.extend(partners::strategy(&asked, network));
    }
    all.push(pairwise::strategy(&asked, network));
    all
}

/// Bytes of a block that are supposed where nobody knows all.
const SUPPOSED: u64 = 64;

pub(crate) fn messages(call: &Call, network: &Network) -> Option<Messages> {
    let strategy = choose::strategy(call, network);
    match (&call.blocks, strategy.algorithm) {
        (Blocks::Equal(0), _) => Some(Messages::default()),
        (Blocks::Equal(_), how @ (Algorithm::Leaders | Algorithm::LeadersRouted | Algorithm::Bruck)) => {
            Some(leaders::messages(network, how))
        }
        (Blocks::Equal(_), Algorithm::Partners) => Some(partners::messages(network)),
        (&Blocks::Equal(block), Algorithm::Envoys) => {
            Some(envoys::messages(network, envoys::parts(call, block, strategy.segment)))
        }
        (Blocks::Equal(_), Algorithm::Pairwise) => Some(pairwise::messages(network)),
        _ => None,
    }
}

pub(crate) fn bytes(call: &Call, network: &Network) -> Option<Bytes> {
    let Blocks::Equal(block) = call.blocks else { return None };
    let strategy = choose::strategy(call, network);
    match strategy.algorithm {
        Algorithm::Pairwise => Some(Bytes::of(pairwise::messages(network), call.bytes(block))),
        Algorithm::Partners => Some(Bytes::of(partners::messages(network), call.bytes(block))),
        Algorithm::Envoys => Some(envoys::bytes(network, call.bytes(block))),
        how @ (Algorithm::Leaders | Algorithm::Bruck) if strategy.is_flat(1) => {
            Some(leaders::bytes(network, how, call.bytes(block)))
        }
        _ => None,
    }
}
