// SPDX-License-Identifier: Apache-2.0
//! Signals that are for the processes.

use super::{Coordinator, Event};
use isthmus_wire::grid::ToAgent;
use rustix::process::Signal;
use std::io;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Signals that go to all processes.
const FORWARDED: [Signal; 4] = [Signal::USR1, Signal::USR2, Signal::TSTP, Signal::CONT];

/// Makes events of the signals that are for the processes.
pub(super) fn forward(events: &mpsc::UnboundedSender<Event>) -> io::Result<()> {
    for kind in FORWARDED {
        let number = kind.as_raw();
        if is_ignored(number) {
            continue;
        }
        let mut signals = signal(SignalKind::from_raw(number))?;
        let events = events.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                let _ = events.send(Event::Forward(number as u32));
            }
        });
    }
    Ok(())
}

/// Whether somebody (nohup, a shell without job control) wants us to take no notice of a signal.
pub(super) fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:")).map(str::trim);
    mask.and_then(|m| u64::from_str_radix(m, 16).ok())
        .is_some_and(|mask| mask >> (signal - 1) & 1 != 0)
}

impl Coordinator {
    /// A signal for the processes. One that stops this process stops them first, and their agents hear of it.
    pub(super) fn forward(&mut self, signal: u32) {
        let stops = signal == Signal::TSTP.as_raw() as u32;
        if stops && self.stop.is_near() {
            return;
        }
        if stops {
            self.printer.print_progress(Vec::new());
        }
        self.connections.send_all(&ToAgent::Signal(signal));
        if stops {
            self.ping();
            self.stop.begin(self.ticks, self.connections.serving().collect());
        }
    }
}
