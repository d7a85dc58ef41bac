// SPDX-License-Identifier: Apache-2.0
//! What stands in the place of a transport that has left, until another one gets its number.

use isthmus_transport::{Limits, SendError, Still, Transport};

/// Its name, which no transport has.
const NAME: &str = "none";

/// Nobody is reached by it.
pub(crate) fn retired() -> impl Transport {
    let limits = Limits {
        frame: 4096,
        eager: 0,
        pull: false,
        bulk: false,
        far: false,
    };
    Still::new(NAME, limits, |_| {
        Err(SendError::Lost("it has been disconnected".to_owned()))
    })
}

/// Whether a transport stands for one that has left.
pub(crate) fn is_retired(transport: &dyn Transport) -> bool {
    transport.name() == NAME
}
