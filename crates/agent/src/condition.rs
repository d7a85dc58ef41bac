// SPDX-License-Identifier: Apache-2.0
//! Processes that a signal has stopped, or whose memory is swapped out: found out from /proc, a few at a time.

use crate::processes::Process;
use isthmus_wire::waiting::Condition;
use std::collections::HashMap;

/// Processes that are looked at each time: one look costs some tens of microseconds.
const AT_ONCE: usize = 64;
/// Memory that may be swapped out without a word, bytes: a process that runs well has some.
const SMALL: u64 = 16 << 20;

/// What was seen last.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    next: usize,
    seen: HashMap<u32, Condition>,
}

impl Conditions {
    /// Looks at the next processes; gives those that have changed.
    pub(crate) fn look(&mut self, processes: &[Process]) -> Vec<Condition> {
        let count = processes.len().min(AT_ONCE);
        let mut changed = Vec::new();
        for _ in 0..count {
            let index = self.next % processes.len();
            self.next = index + 1;
            let process = &processes[index];
            if process.exit.is_some() || process.pid == 0 {
                continue;
            }
            let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid)).unwrap_or_default();
            let (stopped, swapped) = read(&status);
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            let now = Condition {
                index,
                pid: process.pid,
                stopped,
                swapped,
            };
            if self.seen.get(&index) != Some(&now) {
                self.seen.insert(index, now);
                changed.push(now);
            }
        }
        changed
    }
}

/// Whether the process is stopped, and bytes that are swapped out where that is worth telling, of its `status`.
fn read(status: &str) -> (bool, u64) {
    let field = |name: &str| status.lines().find_map(|l| l.strip_prefix(name)).map(str::trim);
    let stopped = field("State:").is_some_and(|s| s.starts_with(['T', 't']));
    let kilobytes = field("VmSwap:").and_then(|s| s.split(' ').next()?.parse::<u64>().ok());
    let swapped = kilobytes.unwrap_or(0) << 10;
    (stopped, if swapped < SMALL { 0 } else { swapped & !(SMALL - 1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_understood() {
        let text = "Name:\tapp\nState:\tT (stopped)\nVmSwap:\t   40960 kB\n";
        assert_eq!(read(text), (true, 32 << 20));
        assert_eq!(read("State:\tS (sleeping)\nVmSwap:\t 12 kB\n"), (false, 0));
        assert_eq!(read(""), (false, 0));
    }
}
