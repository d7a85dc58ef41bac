// SPDX-License-Identifier: Apache-2.0
//! Whoever reads what a command prints: a command that prints again and again ends soon after its reader (`| head`),
//! also while there is nothing to print.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::time::Duration;

/// Waits so long; false, at once, when nobody reads our standard output any more.
pub(crate) fn waits(time: Duration) -> bool {
    let output = io::stdout();
    // Nothing is asked for: only what is told in any case.
    let mut ends = [PollFd::new(&output, PollFlags::empty())];
    let time_spec = Timespec::try_from(time).ok();
    match poll(&mut ends, time_spec.as_ref()) {
        Ok(0) => true,
        Ok(_) if ends[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) => false,
        // A signal, or a stream that cannot be looked at.
        _ => {
            std::thread::sleep(time);
            true
        }
    }
}
