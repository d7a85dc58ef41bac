// SPDX-License-Identifier: Apache-2.0
//! Standard input for rank 0, read in a thread of its own.

use std::io::Read;
use tokio::sync::mpsc;

/// Bytes read at once.
pub(crate) const PIECE: usize = 32 << 10;

/// Starts to read; pieces arrive one at a time, an empty one is the end.
pub(crate) fn start() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(1);
    if is_in_background() {
        // Reading would stop us: a job in the background gets no input, as if it were empty.
        let _ = sender.try_send(Vec::new());
        return receiver;
    }
    let thread = std::thread::Builder::new().name("input".to_owned()).spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut buffer = vec![0; PIECE];
        loop {
            let n = match input.read(&mut buffer) {
                Ok(n) => n,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => 0,
            };
            if sender.blocking_send(buffer[..n].to_vec()).is_err() || n == 0 {
                return;
            }
        }
    });
    drop(thread);
    receiver
}

fn is_in_background() -> bool {
    let stdin = std::io::stdin();
    rustix::termios::isatty(&stdin)
        && rustix::termios::tcgetpgrp(&stdin).is_ok_and(|group| group != rustix::process::getpgrp())
}
