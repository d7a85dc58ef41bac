// SPDX-License-Identifier: Apache-2.0
//! **Allreduce in shares: a process of another site combines each of them, and spreads the result.**
//!
//! | | |
//! |---|---|
//! | messages | 2 (S − 1) per piece over the outermost level, and 2 (parts − 1) inside each cluster |
//! | trips | 2 over the outermost level |
//! | bytes | 2 n / S on each link between two sites, 2 n (S − 1) / S from each: the minimum |
//! | long messages | pieces of all shares follow each other through all tiers at once; other leaders of each site in turn, so that inside a site it is a reduce-scatter and an allgather |
//! | restrictions | up to 64 sites; of no use for messages that are not cut |
//! | paper | Rabenseifner: Optimization of collective reduction operations, 2004 (the idea; here both halves are direct, over all tiers) |

use crate::shares;
use crate::strategy::{Sharing, Strategy};
use crate::trees::Trees;

/// The ways to do so for messages that are long enough; their plans are those of [`tree`](super::tree), with a tree for
/// each share.
pub(super) fn candidates(trees: &Trees<'_>) -> Vec<Strategy> {
    shares::candidates(trees, Sharing::Tops)
}
