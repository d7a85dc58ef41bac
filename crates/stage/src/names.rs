// SPDX-License-Identifier: Apache-2.0
//! Names that processes of a job have published: for each other, and for other jobs of the user on this machine. A
//! launcher has them for its job; a program without one has its own.

mod directory;

pub use directory::{Announced, all, announce, worlds};

use directory::{Owner, Refused};
use isthmus_wire::question::{Kind, Refusal, Scope};
use isthmus_wire::word::counted;
use std::collections::BTreeMap;
use std::io;

/// Most names that a process has published at a time, in each scope.
pub const MOST: usize = 256;

/// A process: subjob and index.
pub type Publisher = (usize, u32);

/// What a name stands for, and whose it is.
#[derive(Debug, PartialEq, Eq)]
struct Published {
    port: String,
    by: Publisher,
}

/// The names of a job.
#[derive(Debug)]
pub struct Names {
    /// What the job is called, for people.
    job: String,
    published: BTreeMap<(Scope, String), Published>,
    /// Once something was published for other jobs.
    owner: Option<Owner>,
}

impl Names {
    /// None as yet; `job`: what other jobs call this one.
    pub fn new(job: &str) -> Self {
        Self {
            job: job.to_owned(),
            published: BTreeMap::new(),
            owner: None,
        }
    }

    /// From now on the name stands for this port.
    ///
    /// # Errors
    /// It is published already, or cannot be.
    pub fn publish(&mut self, by: Publisher, scope: Scope, name: String, port: String) -> Result<(), Refusal> {
        let key = (scope, name);
        let known = Published { port, by };
        match self.published.get(&key) {
            // A question that was asked twice, because a connection was lost.
            Some(same) if *same == known => return Ok(()),
            Some(_) => {
                let why = format!(
                    "the name '{}' is published in this job already: unpublish it first",
                    key.1
                );
                return Err(Refusal::new(Kind::Taken, why));
            }
            None => {}
        }
        let own = self
            .published
            .iter()
            .filter(|((s, _), known)| *s == scope && known.by == by);
        if own.count() >= MOST {
            let why = format!("this process has published {} already", counted(MOST, "name"));
            return Err(Refusal::new(Kind::Unable, why));
        }
        if scope == Scope::User {
            self.publish_for_user(&key.1, &known.port)?;
        }
        self.published.insert(key, known);
        Ok(())
    }

    /// Whether this process has published this name for this port.
    pub fn has(&self, by: Publisher, scope: Scope, name: &str, port: &str) -> bool {
        let known = self.published.get(&(scope, name.to_owned()));
        known.is_some_and(|known| known.by == by && known.port == port)
    }

    fn publish_for_user(&mut self, name: &str, port: &str) -> Result<(), Refusal> {
        let owner = match &self.owner {
            Some(owner) => owner,
            None => self.owner.insert(Owner::begin(&self.job).map_err(no_place)?),
        };
        owner.publish(name, port).map_err(refused)
    }

    /// Which port it stands for: in this job, and where no scope is named else for the user.
    ///
    /// # Errors
    /// Nobody has published it.
    pub fn look_up(&self, scope: Option<Scope>, name: &str) -> Result<String, Refusal> {
        if scope != Some(Scope::User) {
            if let Some(known) = self.published.get(&(Scope::Job, name.to_owned())) {
                return Ok(known.port.clone());
            }
        }
        if scope != Some(Scope::Job) {
            if let Some(known) = directory::look_up(name).map_err(no_place)? {
                return Ok(known.port);
            }
        }
        Err(unknown(scope, name))
    }

    /// From now on it does not stand for this port.
    ///
    /// # Errors
    /// This process has not published it.
    pub fn unpublish(&mut self, by: Publisher, scope: Option<Scope>, name: &str, port: &str) -> Result<(), Refusal> {
        for scope in [Scope::Job, Scope::User]
            .into_iter()
            .filter(|s| scope.is_none_or(|scope| scope == *s))
        {
            let key = (scope, name.to_owned());
            let known = self.published.get(&key);
            if known.is_some_and(|known| known.port == port && known.by == by) {
                self.remove(scope, name);
                return Ok(());
            }
        }
        let why = format!("this process has not published '{name}' for that port, or has taken it back already");
        Err(Refusal::new(Kind::Taken, why))
    }

    fn remove(&mut self, scope: Scope, name: &str) {
        let known = self.published.remove(&(scope, name.to_owned()));
        let Some(known) = known.filter(|_| scope == Scope::User) else {
            return;
        };
        if let Some(owner) = &self.owner {
            // What stays in a place that cannot be used any more vanishes with this process.
            let _ = owner.unpublish(name, &known.port);
        }
    }

    /// A process has ended, and its ports with it.
    pub fn forget(&mut self, by: Publisher) {
        let own = self.published.iter().filter(|(_, known)| known.by == by);
        let own: Vec<_> = own.map(|(key, _)| key.clone()).collect();
        own.iter().for_each(|(scope, name)| self.remove(*scope, name));
    }

    /// Those that this job alone finds, with their ports.
    pub fn of_job(&self) -> Vec<(String, String)> {
        let all = self.published.iter().filter(|((scope, _), _)| *scope == Scope::Job);
        all.map(|((_, name), known)| (name.clone(), known.port.clone()))
            .collect()
    }
}

fn unknown(scope: Option<Scope>, name: &str) -> Refusal {
    let whose = match scope {
        Some(Scope::Job) => "in this job",
        Some(Scope::User) => "for all jobs of the user on the launcher's machine",
        None => "in this job or for all jobs of the user",
    };
    Refusal::new(Kind::Unknown, format!("nobody has published the name '{name}' {whose}"))
}

fn no_place(error: io::Error) -> Refusal {
    Refusal::new(Kind::Unable, format!("the names of the user cannot be used: {error}"))
}

fn refused(refused: Refused) -> Refusal {
    match refused {
        Refused::NoPlace(error) => no_place(error),
        Refused::Taken(known) => {
            let why = format!("the name '{}' is published already, by {}", known.name, known.job);
            Refusal::new(Kind::Taken, why)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publish(names: &mut Names, by: Publisher, name: &str, port: &str) -> Result<(), Kind> {
        let published = names.publish(by, Scope::Job, name.into(), port.into());
        published.map_err(|refusal| refusal.kind)
    }

    #[test]
    fn a_name_is_its_publishers_until_that_ends() {
        let mut names = Names::new("j");
        let here = Some(Scope::Job);
        assert_eq!(publish(&mut names, (0, 1), "ocean", "p"), Ok(()));
        assert_eq!(publish(&mut names, (0, 1), "ocean", "p"), Ok(()), "asked again");
        for (by, port) in [((0, 1), "q"), ((0, 2), "p")] {
            assert_eq!(publish(&mut names, by, "ocean", port), Err(Kind::Taken));
            assert_eq!(names.unpublish(by, None, "ocean", port).unwrap_err().kind, Kind::Taken);
        }
        assert_eq!(names.look_up(here, "ocean").as_deref(), Ok("p"));
        assert_eq!(names.look_up(here, "Ocean").unwrap_err().kind, Kind::Unknown);
        assert!(names.unpublish((0, 1), Some(Scope::User), "ocean", "p").is_err());
        assert!(names.unpublish((0, 1), None, "ocean", "p").is_ok());
        assert!(names.unpublish((0, 1), None, "ocean", "p").is_err());
        assert_eq!(publish(&mut names, (0, 2), "ocean", "r"), Ok(()));
        assert_eq!(names.of_job(), [("ocean".to_owned(), "r".to_owned())]);
        names.forget((0, 2));
        assert!(names.look_up(here, "ocean").is_err() && names.of_job().is_empty());
    }

    #[test]
    fn a_process_has_so_many_names() {
        let mut names = Names::new("j");
        for n in 0..MOST {
            assert_eq!(publish(&mut names, (0, 0), &n.to_string(), "p"), Ok(()));
        }
        assert_eq!(publish(&mut names, (0, 0), "x", "p"), Err(Kind::Unable));
        assert_eq!(publish(&mut names, (0, 1), "x", "p"), Ok(()));
    }
}
