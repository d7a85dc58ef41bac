// SPDX-License-Identifier: Apache-2.0
//! **Barrier among leaders by dissemination: in round r everybody tells the one 2^r farther on.**
//!
//! | | |
//! |---|---|
//! | messages | k ⌈log2 k⌉ |
//! | trips | ⌈log2 k⌉, the minimum with one message at a time |
//! | bytes | 0 |
//! | restrictions | none |
//! | paper | Hensgen, Finkel, Manber: Two algorithms for barrier synchronization, 1988 |

use crate::script::{Kind, Script};
use crate::signal::{receive, send};
use crate::step::After;
use crate::tree::Council;

pub(super) fn meet(script: &mut Script, council: &Council, below: After) -> After {
    let (i, k) = (council.index, council.size);
    let mut known = below;
    let mut distance = 1;
    while distance < k {
        send(script, council.rank((i + distance) % k), Kind::Exchange, known.clone());
        let heard = receive(
            script,
            council.rank((i + k - distance) % k),
            Kind::Exchange,
            After::NONE,
        );
        known = script.join(known.iter().copied().chain([heard]).collect());
        distance *= 2;
    }
    known
}

/// Messages among so many members.
pub(super) fn messages(members: u64) -> u64 {
    members * u64::from(members.next_power_of_two().ilog2())
}
