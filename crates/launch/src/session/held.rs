// SPDX-License-Identifier: Apache-2.0
//! What a job leaves for a launcher that follows the one it has lost.

use super::{Entry, HELD, Session, private};
use crate::hold::Held;
use rustix::fs::{FlockOperation, flock};
use serde_json::json;
use std::fs::{self, File};
use std::io::{self, Read};
use std::time::SystemTime;

/// Its largest size, bytes.
const MAX_HELD: u64 = 32 << 20;

impl Session {
    /// The place of a job that has lost its launcher, for this process. Its logs stay when it has ended.
    ///
    /// # Errors
    /// Another launcher has it, or nothing can be kept here.
    pub fn take_up(entry: &Entry) -> io::Result<Self> {
        let lock = private().open(entry.path.join("lock"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from)?;
        let held = entry.held().ok_or_else(|| io::Error::other("nothing is kept of it"))?;
        let mut session = Self {
            path: entry.path.clone(),
            name: entry.name.clone(),
            words: entry.words().into_iter().map(str::to_owned).collect(),
            chosen: entry.chosen_name().map(str::to_owned),
            options: held.words,
            environment: held.environment,
            _lock: lock,
            listener: None,
            keep: true,
        };
        let _ = fs::remove_file(session.path.join("socket"));
        session.listener = Some(session.listen()?);
        let mut facts = entry.about.clone().unwrap_or_default();
        (facts["pid"], facts["background"]) = (json!(std::process::id()), json!(true));
        session.write("about", &facts)?;
        Ok(session)
    }

    /// Options and settings for a launcher that follows.
    pub(crate) fn for_successor(&self) -> (Vec<String>, Vec<(String, String)>) {
        (self.options.clone(), self.environment.clone())
    }

    /// Keeps what a launcher that follows this one needs.
    pub(crate) fn hold(&self, held: &Held) -> io::Result<()> {
        self.write(HELD, &held.json())
    }

    /// This launcher lives.
    pub(crate) fn beat(&self) {
        let touched = File::options().append(true).open(self.path.join(HELD));
        // Without it others take the job for lost too early, and the lock tells them that it is not.
        let _ = touched.and_then(|file| file.set_modified(SystemTime::now()));
    }
}

impl Entry {
    /// What a launcher that follows the one of this job needs.
    pub fn held(&self) -> Option<Held> {
        let mut text = String::new();
        let file = File::open(self.path.join(HELD)).ok()?;
        file.take(MAX_HELD).read_to_string(&mut text).ok()?;
        Held::parse(&text)
    }

    /// How long a job that has lost its launcher is still waiting for another one; nothing: it has not, or it does not.
    pub fn seconds_left(&self) -> Option<u64> {
        if self.lives || self.outcome.is_some() {
            return None;
        }
        let last = fs::metadata(self.path.join(HELD)).and_then(|m| m.modified()).ok()?;
        let alone = SystemTime::now().duration_since(last).unwrap_or_default();
        self.held()?.away.checked_sub(alone.as_secs()).filter(|left| *left > 0)
    }
}
