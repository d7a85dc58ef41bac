// SPDX-License-Identifier: Apache-2.0
//! **Allgather among leaders around a ring, in the order in which its narrowest link is as wide as it can be: each
//! hands on to the next what it gets from the one before.**
//!
//! | | |
//! |---|---|
//! | messages | k (k − 1): the minimum |
//! | trips | k − 1 |
//! | bytes | every block passes every link of the ring but one once, and no other link: narrow links are left out where that is possible |
//! | long messages | blocks of all leaders are on their way at once; each site's go down inside as soon as they have come |
//! | restrictions | 4 to 12 leaders whose links are unlike; in one tier of chains [shared](super::shared) is a ring in order of position |
//! | paper | Prime-PCCL (ring in the order of measured bandwidth); Thakur, Rabenseifner, Gropp 2005 (ring allgather) |
//!
//! The order is found by [`ring`](crate::ring); blocks go on as in the other meetings of this folder's `tree`.

use super::bruck;

/// Whether so many bytes are worth a ring. Fewer go in rounds, which are for latency.
pub(super) fn is_worth_while(bytes: u64) -> bool {
    bytes > bruck::MOST
}
