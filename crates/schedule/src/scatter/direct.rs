// SPDX-License-Identifier: Apache-2.0
//! **Scatter of short blocks without leaders for sites that act for no other.**
//!
//! | | |
//! |---|---|
//! | messages | over the wide area one per process of a site that acts for no other, and one per other site; in the root's site and in those that act for others those of the tree |
//! | trips | wide area 1 (flat; routed: those of the quickest ways), and none inside a site before or after it |
//! | bytes | every block crosses a slow level once (flat): the minimum |
//! | restrictions | equal blocks below 16 KiB, and unequal ones, of which those above 16 KiB go apart; at most 64 processes, no more than 2 at a site; where it costs less than the tree |
//! | paper | – |

use crate::Network;
use crate::choose::Question;
use crate::cost::Flow;
use crate::direct;
use crate::strategy::Strategy;

pub(super) fn candidates(question: &Question, network: &Network, tree: &Strategy) -> Vec<Strategy> {
    direct::candidate(question, network, Flow::Down, tree)
        .into_iter()
        .collect()
}
