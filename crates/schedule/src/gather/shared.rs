// SPDX-License-Identifier: Apache-2.0
//! **Gather of long blocks, each its own way: straight to the root, or to one of those who carry for it.**
//!
//! | | |
//! |---|---|
//! | messages | one per process and piece of a block; over the outermost level one per process of other sites and piece; one more inside the root's site for each that a carrier receives |
//! | trips | 1 over the outermost level |
//! | bytes | every block crosses a slow level once: the minimum; what carriers handle passes the memory of the root's site once more |
//! | long messages | pieces of all blocks follow each other, sites in turn; some processes of the root's site (carriers) receive over the slow links for the root |
//! | restrictions | equal blocks of 16 KiB and more, several sites or machines, at most 256 processes |
//! | paper | van de Geijn: On global combine operations, 1994 (long vectors); pacx-mpi-optimized-algorithms, section IV (few processes talk to other machines) |

use crate::choose::Question;
use crate::cost::Flow;
use crate::star;
use crate::step::{Plan, Rank};
use crate::strategy::Strategy;
use crate::{Call, Network};

pub(super) fn candidates(question: &Question, network: &Network) -> Vec<Strategy> {
    star::candidates(question, network, Flow::Up)
}

pub(super) fn plan(call: &Call, network: &Network, me: Rank, strategy: &Strategy) -> Box<dyn Plan> {
    star::plan(call, network, me, strategy)
}
