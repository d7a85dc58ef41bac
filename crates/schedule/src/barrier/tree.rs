// SPDX-License-Identifier: Apache-2.0
//! **Barrier: up the trees to the leaders of the outermost tier, a meeting of these, and down.**
//!
//! | | |
//! |---|---|
//! | messages | below the outermost tier 2 (parts − 1) per cluster; among S leaders: flat and routed S (S − 1), the minimum for one trip; tree 2 (S − 1), the minimum at all |
//! | trips | below the outermost tier two per tier; among leaders: flat one, routed the quickest ways, tree two |
//! | bytes | 0 |
//! | restrictions | none |
//! | paper | multilevel-topology-aware-collectives 2002, section 3 (MPI_Barrier) |

use super::dissemination;
use crate::Messages;
use crate::Network;
use crate::script::{Kind, Piece, Script};
use crate::signal::{receive, send};
use crate::step::{Action, After, Circle, Rank, Slice};
use crate::strategy::{Algorithm, Strategy};
use crate::tree::{Council, Family, Move};
use std::sync::Arc;

pub(super) fn write(script: &mut Script, network: &Arc<Network>, me: Rank, strategy: &Strategy) {
    let family = Family::of(strategy, network, 0, me);
    let come = family.seat.map(|_| script.barrier_on_node(Circle::Up, After::NONE));
    if family.follows() {
        // Nobody leaves this one before the one who acts for the node has come to it, which he does when all may go.
        script.barrier_on_node(Circle::Down, After::NONE);
        return;
    }
    let receives = family
        .children
        .iter()
        .rev()
        .map(|c| receive(script, c.rank, Kind::Up, After::NONE));
    let below: After = receives.chain(come).collect();
    let below = script.join(below);
    let released = match family.parent {
        Some(parent) => {
            send(script, parent, Kind::Up, below.clone());
            After::from_iter([receive(script, parent, Kind::Down, After::NONE)])
        }
        None if strategy.algorithm == Algorithm::Tree => below,
        None => {
            let council = Council::meeting(network, me, strategy.algorithm);
            meet(script, &council, strategy.algorithm, below)
        }
    };
    for child in &family.children {
        send(script, child.rank, Kind::Down, released.clone());
    }
    if family.seat.is_some() {
        script.barrier_on_node(Circle::Down, released);
    }
}

/// The leaders' meeting; gives what must be complete before the others may go.
fn meet(script: &mut Script, council: &Council, algorithm: Algorithm, below: After) -> After {
    if algorithm == Algorithm::Doubling {
        return dissemination::meet(script, council, below);
    }
    let (mut all, mut last) = (below.clone(), After::NONE);
    council.each_move(false, |step| {
        let about = |item| council.about(&Piece::whole(0), item).slot(Kind::Exchange);
        let data = Slice::NOTHING;
        match step {
            Move::Send { to, item } => {
                let (to, slot) = (council.rank(to), about(item));
                let after = if item == council.index { &below } else { &last };
                script.push(Action::Send { to, data, slot }, after.clone());
            }
            Move::Receive { from, item } => {
                let (from, slot) = (council.rank(from), about(item));
                let come = script.push(Action::Receive { from, data, slot }, After::NONE);
                last = After::from_iter([come]);
                all.add(come);
            }
        }
    });
    script.join(all)
}

pub(super) fn messages(network: &Network, strategy: &Strategy) -> Messages {
    strategy.crossing(
        network,
        match strategy.algorithm {
            Algorithm::Tree => Messages::of_trees(network, 0).times(2),
            Algorithm::Doubling => Messages::of_meeting(network, dissemination::messages),
            _ => Messages::of_meeting(network, Messages::each_to_each),
        },
    )
}
