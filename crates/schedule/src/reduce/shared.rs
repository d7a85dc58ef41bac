// SPDX-License-Identifier: Apache-2.0
//! **Reduce in shares: each comes from other leaders of all sites, or is combined at another site, which sends it on to
//! the root.**
//!
//! | | |
//! |---|---|
//! | messages | (S − 1) per piece over the outermost level, and (parts − 1) inside each cluster |
//! | trips | from all sites 1, through another site 2 over the outermost level |
//! | bytes | from all sites n on each of the root's links; through another site n / (S − 1) on each link between two sites: the minimum |
//! | long messages | pieces of all shares follow each other through all tiers at once; other leaders of each site in turn |
//! | restrictions | operators that are not commutative: sites send to the root directly, n on each link |
//! | paper | van de Geijn: On global combine operations, 1994 (here over sites, pipelined) |

use crate::shares;
use crate::strategy::{Algorithm, Strategy};
use crate::trees::Trees;

/// The ways to do so for messages that are long enough; their plans are those of [`tree`](super::tree), with a tree for
/// each share.
pub(super) fn candidates(trees: &Trees<'_>) -> Vec<Strategy> {
    match trees.algorithm {
        Algorithm::Tree => shares::given_top(trees),
        _ => Vec::new(),
    }
}
