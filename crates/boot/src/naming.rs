// SPDX-License-Identifier: Apache-2.0
//! Names for ports: published, found and taken back, by the coordinator or, without a launcher, by this process itself.

use isthmus_wire::question::{Ask, Kind, Refusal, Said, Scope};

use crate::asking::AskError;
use crate::own_names::alone;
use crate::running::Running;

/// Who publishes them.
const ALONE: (usize, u32) = (0, 0);

impl Running {
    /// From now on the name stands for this port. `scope`: who finds it; `None`: the processes of this job, or without
    /// a launcher all jobs of the user on this machine.
    ///
    /// # Errors
    /// It is published already, or cannot be.
    pub fn publish(&self, scope: Option<Scope>, name: &str, port: &str) -> Result<(), AskError> {
        let (name, port) = (name.to_owned(), port.to_owned());
        if !self.has_launcher() {
            let scope = scope.unwrap_or(Scope::User);
            return alone(|names| names.publish(ALONE, scope, name, port));
        }
        let scope = scope.unwrap_or(Scope::Job);
        self.ask(Ask::Publish { scope, name, port }).and_then(done)
    }

    /// From now on it does not. `scope`: where it was published; `None`: wherever that was.
    ///
    /// # Errors
    /// This process has not published it.
    pub fn unpublish(&self, scope: Option<Scope>, name: &str, port: &str) -> Result<(), AskError> {
        if !self.has_launcher() {
            return alone(|names| names.unpublish(ALONE, scope, name, port));
        }
        let (name, port) = (name.to_owned(), port.to_owned());
        self.ask(Ask::Unpublish { scope, name, port }).and_then(done)
    }

    /// The port that a name stands for. `scope`: where to look; `None`: in this job, then among the names of the user.
    ///
    /// # Errors
    /// Nobody has published it.
    pub fn look_up(&self, scope: Option<Scope>, name: &str) -> Result<String, AskError> {
        if !self.has_launcher() {
            return alone(|names| names.look_up(scope, name));
        }
        let name = name.to_owned();
        match self.ask(Ask::Lookup { scope, name })? {
            Said::Port(port) => Ok(port),
            _ => Err(no_answer()),
        }
    }
}

fn done(said: Said) -> Result<(), AskError> {
    match said {
        Said::Done => Ok(()),
        _ => Err(no_answer()),
    }
}

fn no_answer() -> AskError {
    let why = "the launcher answered what was not asked; please report this";
    AskError::Refused(Refusal::new(Kind::Unable, why))
}
