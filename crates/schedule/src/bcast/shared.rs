// SPDX-License-Identifier: Apache-2.0
//! **Broadcast in shares: each goes to other leaders of all sites, or to another site first, which sends it on to the
//! rest, while its pieces spread inside.**
//!
//! | | |
//! |---|---|
//! | messages | (S − 1) per piece over the outermost level, and (parts − 1) inside each cluster |
//! | trips | to all sites 1, through another site 2 over the outermost level |
//! | bytes | to all sites n on each of the root's links; through another site n / (S − 1) on each link between two sites: the minimum; no byte crosses a link twice |
//! | long messages | pieces of all shares follow each other through all tiers at once; other leaders of each site in turn |
//! | restrictions | of no use for messages that are not cut |
//! | paper | van de Geijn: On global combine operations, 1994 (scatter and allgather; here over sites, pipelined) |

use crate::shares;
use crate::strategy::Strategy;
use crate::trees::Trees;

/// The ways to do so for messages that are long enough; their plans are those of [`tree`](super::tree), with a tree for
/// each share.
pub(super) fn candidates(trees: &Trees<'_>) -> Vec<Strategy> {
    shares::given_top(trees)
}
