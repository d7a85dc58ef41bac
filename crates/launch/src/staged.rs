// SPDX-License-Identifier: Apache-2.0
//! What sites have said of files and libraries, so that a subjob that is added later need not ask again.

use isthmus_job::Subjob;
use isthmus_reach::staging::Staged;
use isthmus_wire::grid::Hash;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long an answer is good. The cache of a site keeps what was asked for longer: for the time of its lease.
const FRESH: Duration = Duration::from_secs(300);

/// Libraries that a program names, and where each of them is at home.
pub(crate) type Wanted = Vec<(String, Option<PathBuf>)>;

/// A site, its set-up, and what is looked for there.
type Search = (String, Vec<String>, Wanted);

/// What is known of sites.
#[derive(Debug, Default)]
pub(crate) struct SiteContents {
    answers: Mutex<Answers>,
}

#[derive(Debug, Default)]
struct Answers {
    /// Where a file with this content and name is at a site.
    files: HashMap<(String, Hash, String), (String, Instant)>,
    /// What of these libraries, which are wanted by some program, a site lacks. Its set-up decides where it looks.
    lacking: HashMap<Search, (Vec<PathBuf>, Instant)>,
}

impl SiteContents {
    /// Where the site has this file.
    pub(crate) fn path(&self, subjob: &Subjob, file: &Staged) -> Option<String> {
        let key = (subjob.contact.to_string(), file.hash, file.name.clone());
        self.lock().files.get(&key).map(|(path, _)| path.clone())
    }

    /// It has it there.
    pub(crate) fn learn_path(&self, subjob: &Subjob, file: &Staged, path: &str) {
        let key = (subjob.contact.to_string(), file.hash, file.name.clone());
        self.lock().files.insert(key, (path.to_owned(), Instant::now()));
    }

    /// What the site lacks of these libraries.
    pub(crate) fn lacking(&self, subjob: &Subjob, wanted: &Wanted) -> Option<Vec<PathBuf>> {
        let key = (subjob.contact.to_string(), subjob.setup.clone(), wanted.clone());
        self.lock().lacking.get(&key).map(|(files, _)| files.clone())
    }

    /// It lacks these.
    pub(crate) fn learn_lacking(&self, subjob: &Subjob, wanted: Wanted, files: &[PathBuf]) {
        let key = (subjob.contact.to_string(), subjob.setup.clone(), wanted);
        self.lock().lacking.insert(key, (files.to_vec(), Instant::now()));
    }

    fn lock(&self) -> MutexGuard<'_, Answers> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.files.retain(|_, (_, since)| since.elapsed() < FRESH);
        answers.lacking.retain(|_, (_, since)| since.elapsed() < FRESH);
        answers
    }
}
