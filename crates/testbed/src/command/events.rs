// SPDX-License-Identifier: Apache-2.0
//! What a waiting command listens to: signals, its child, a request to end.

use std::process::{Child, ExitStatus};
use std::sync::mpsc::Sender;

use isthmus_testbed::Error;
use tokio::signal::unix::{SignalKind, signal};

/// Something happened.
#[derive(Debug)]
pub(crate) enum Event {
    /// A signal that asks to end.
    Signal(rustix::process::Signal),
    /// The child ended.
    Exited(std::io::Result<ExitStatus>),
    /// `isthmus-testbed down`.
    Down,
}

/// Turns SIGINT, SIGTERM and SIGHUP into events from now on.
pub(crate) fn signals(events: Sender<Event>) -> Result<(), Error> {
    use rustix::process::Signal;
    let failed = |source| Error::System {
        doing: "listen to signals".to_owned(),
        source,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(failed)?;
    let mut streams = Vec::new();
    for (kind, name) in [
        (SignalKind::interrupt(), Signal::INT),
        (SignalKind::terminate(), Signal::TERM),
        (SignalKind::hangup(), Signal::HUP),
    ] {
        let _inside = runtime.enter();
        streams.push((signal(kind).map_err(failed)?, name));
    }
    let listen = move || {
        runtime.block_on(async move {
            let [(interrupt, int), (terminate, term), (hangup, hup)] = &mut streams[..] else {
                return;
            };
            loop {
                let signal = tokio::select! {
                    _ = interrupt.recv() => *int,
                    _ = terminate.recv() => *term,
                    _ = hangup.recv() => *hup,
                };
                if events.send(Event::Signal(signal)).is_err() {
                    return;
                }
            }
        });
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(listen)
        .map_err(failed)?;
    Ok(())
}

/// Makes the end of `child` an event.
pub(crate) fn exit_of(mut child: Child, events: Sender<Event>) -> Result<(), Error> {
    let wait = move || {
        // Nobody listening: the command is over anyway.
        let _ = events.send(Event::Exited(child.wait()));
    };
    let started = std::thread::Builder::new().name("child".to_owned()).spawn(wait);
    started.map(drop).map_err(|source| Error::System {
        doing: "start a thread".to_owned(),
        source,
    })
}
