// SPDX-License-Identifier: Apache-2.0
//! Scatter and scatterv.

mod counts;
mod tree;

pub(crate) use counts::plan as counts;
pub(crate) use tree::spread;

use crate::choose::{self, Question, Strategy};
use crate::cost::Way;
use crate::form::Form;
use crate::rooted;
use crate::script::Script;
use crate::step::{Plan, Rank};
use crate::{Blocks, Call, Messages, Network, Operation};
use std::sync::Arc;

pub(crate) fn plan(call: &Call, network: &Arc<Network>, me: Rank) -> Box<dyn Plan> {
    if call.operation == Operation::Scatter && call.blocks == Blocks::Equal(0) {
        return Box::new(Script::default());
    }
    tree::plan(call, network, me)
}

pub(crate) fn candidates(question: &Question, network: &Network) -> Vec<Strategy> {
    vec![rooted::blocks(question, network, Way::Down)]
}

pub(crate) fn messages(call: &Call, network: &Network) -> Option<Messages> {
    let straight = |strategy: &Strategy| matches!(strategy.forms.first(), None | Some(Form::Flat));
    match call.operation {
        Operation::Scatter if call.blocks == Blocks::Equal(0) => Some(Messages::default()),
        Operation::Scatter => Some(tree::messages(network)),
        // Long blocks are not handed on, and not all know which are.
        _ => straight(&choose::strategy(call, network)).then(|| tree::messages(network)),
    }
}
