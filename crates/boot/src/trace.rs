// SPDX-License-Identifier: Apache-2.0
//! A traced process: what the engine and the connections record goes to the agent, from a thread of its own.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, UNIX_EPOCH};

use isthmus_core::world::World;
use isthmus_engine::Trace;
use isthmus_net::Prober;
use isthmus_wire::boot::Message;
use isthmus_wire::trace::{Record, What, encode};

use crate::BootError;
use crate::rendezvous::Voice;

/// How often what was recorded is sent.
const PAUSE: Duration = Duration::from_millis(100);
/// Records of one message to the agent: some 50 KiB.
const PIECE: usize = 1024;

/// Sends what is recorded until it is dropped; then the rest.
pub(crate) struct Recorder {
    over: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Recorder {
    /// Begins, if the job is traced (`ISTHMUS_TRACE`).
    pub(crate) fn start(world: &Arc<World>, voice: Voice, prober: Option<Prober>) -> Result<Option<Self>, BootError> {
        if !isthmus_settings::TRACE.read(std::env::var_os) {
            return Ok(None);
        }
        let trace = world.engine().lock().core.tools().trace();
        if let Some(prober) = &prober {
            prober.trace();
        }
        let over = Arc::new((Mutex::new(false), Condvar::new()));
        let end = over.clone();
        let work = move || {
            loop {
                let last = wait(&end);
                let sent = send(&trace, &voice, prober.as_ref());
                if last || sent.is_err() {
                    return;
                }
            }
        };
        let thread = isthmus_lock::spawn_quiet("isthmus-trace", work)
            .map_err(|e| BootError::System(format!("failed to start the thread that sends the trace: {e}")))?;
        let thread = Some(thread);
        Ok(Some(Self { over, thread }))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        *self.over.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.over.1.notify_one();
        if let Some(thread) = self.thread.take() {
            // It ends without an error or with the process.
            let _ = thread.join();
        }
    }
}

/// Waits a while; true: it is the end.
fn wait((over, end): &(Mutex<bool>, Condvar)) -> bool {
    let over = over.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = end.wait_timeout_while(over, PAUSE, |over| !*over);
    *waited.unwrap_or_else(PoisonError::into_inner).0
}

/// Sends what is there. While the agent does not take it, records pile up as far as there is room.
fn send(trace: &Trace, voice: &Voice, prober: Option<&Prober>) -> std::io::Result<()> {
    let mut records = trace.take();
    for (time, text) in prober.map(Prober::events).unwrap_or_default() {
        let time = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        records.push(Record {
            time: time.as_nanos().try_into().unwrap_or(u64::MAX),
            what: What::Link(text),
        });
    }
    records
        .chunks(PIECE)
        .try_for_each(|piece| voice.say(&Message::Trace(encode(piece))))
}
