// SPDX-License-Identifier: Apache-2.0
//! What the directories of subjobs give back when the job is over.

use crate::directories::KeptDirectory;
use crate::shared::Shared;
use crate::{left, outputs};
use isthmus_job::Contact;
use isthmus_job::transfer::Pattern;
use isthmus_reach::service::out_of_turn;
use isthmus_reach::transfer::Line;
use isthmus_reach::{Failure, plain};
use isthmus_wire::service::{Answer, Ask, EntryKind, File, Root};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How long a site that did not answer any more is asked for what its processes have left.
const LAST_TRY: Duration = Duration::from_secs(8);
/// Nothing runs any more that could be where it should not be: outputs are waited for for so long at least.
const PATIENCE: Duration = Duration::from_secs(60);

/// Hears how far a subjob's files are.
pub(crate) type Tell = Arc<dyn Fn(usize, String) + Send + Sync>;

/// Begins to fetch the outputs of all subjobs, and removes the directories after that. `silent` says by subjob
/// whether the site does not answer any more; `tell` hears how far each is. The tasks say what went wrong.
pub(crate) fn empty(shared: &Arc<Shared>, silent: &[bool], tell: &Tell) -> JoinSet<Emptied> {
    let kept = shared.directories.take();
    let numbers: Vec<usize> = kept.iter().map(|one| one.number).collect();
    let mut tasks = JoinSet::new();
    for (at, one) in kept.into_iter().enumerate() {
        // A subjob that was begun again elsewhere gives back what it has there.
        let replaced = numbers[at + 1..].contains(&one.number);
        let silent = silent.get(one.number).copied().unwrap_or(false);
        let (shared, tell) = (Arc::clone(shared), Arc::clone(tell));
        tasks.spawn(async move { one.empty(&shared, replaced, silent, &tell).await });
    }
    tasks
}

/// How long a site may be out of reach while its outputs are fetched.
pub(crate) fn patience(away: Duration) -> Duration {
    away.max(PATIENCE)
}

impl KeptDirectory {
    async fn empty(mut self, shared: &Shared, replaced: bool, silent: bool, tell: &Tell) -> Emptied {
        let service = match self.attended.take() {
            Some(attended) => attended.end().await,
            None => None,
        };
        let hope = if silent {
            LAST_TRY
        } else {
            patience(shared.options.silence)
        };
        let place = (&self.contact, self.setup.as_slice());
        let mut line = Line::within(&shared.access, place, service, self.workspace.clone(), hope);
        // What nobody wants is not waited for.
        if replaced || silent && !self.transfers.gives_back() {
            if let Ok(service) = line.into_service() {
                if silent {
                    service.abandon()
                } else {
                    service.leave().await
                }
            }
            return Emptied::default();
        }
        let number = self.number;
        let shown = |how: String| tell(number, how);
        let fetching = self.fetch(&mut line, shared, &shown);
        let fetched = if silent {
            let late = || Err(Failure::new("it does not answer", ""));
            tokio::time::timeout(LAST_TRY, fetching)
                .await
                .unwrap_or_else(|_| late())
        } else {
            fetching.await
        };
        let service = line.into_service();
        let site = &self.site;
        let failure = match fetched {
            Ok(fetched) => {
                if let Ok(service) = service {
                    match &fetched.left {
                        Some(_) => service.abandon(),
                        None => service.leave().await,
                    }
                }
                return Emptied {
                    left: fetched.left.map(|left| format!("site '{site}': {left}")),
                    site: self.site,
                    missing: fetched.missing,
                    files: fetched.files,
                    ..Emptied::default()
                };
            }
            Err(failure) => failure,
        };
        if let Ok(service) = service {
            service.abandon();
        }
        if !self.transfers.gives_back() {
            // Whether something was made there is not known.
            return Emptied::default();
        }
        let problem = format!(
            "site '{site}': its outputs could not be fetched: {}; they stay there for {} min: isthmus cp {} TARGET",
            failure.problem,
            minutes(shared.options.lease),
            self.at(),
        );
        Emptied {
            problem: Some(problem),
            ..Emptied::default()
        }
    }

    /// What to say where a pattern has found nothing: the processes of the site work elsewhere.
    fn elsewhere(&self) -> Option<String> {
        let directory = self.directory.as_deref().filter(|path| path.starts_with(['/', '~']))?;
        let contact = Some(&self.contact).filter(|contact| **contact != Contact::Home)?;
        let path = directory.strip_prefix('/').unwrap_or(directory);
        Some(format!(
            "its processes worked in '{}', where --output does not look; it fetches from the directory that ISTHMUS_FILES names: \
             isthmus cp isthmus://{contact}/{path}/FILE TARGET fetches from theirs",
            plain(directory)
        ))
    }

    /// What `isthmus cp` calls the directory.
    fn at(&self) -> String {
        let files = &self.workspace.files;
        match &self.contact {
            Contact::Home => files.clone(),
            contact => format!("isthmus://{contact}{files}"),
        }
    }

    /// Fetches what the subjob gives back.
    async fn fetch(
        &self,
        line: &mut Line<'_>,
        shared: &Shared,
        tell: &(dyn Fn(String) + Sync),
    ) -> Result<Fetched, Failure> {
        let home = &shared.options.directory;
        let transfers = &self.transfers;
        outputs::fetch_taken(transfers, line, home, tell).await?;
        for path in &transfers.removed {
            let (root, path) = (Root::Site, path.clone());
            line.perform(&Ask::Remove(File { root, path })).await?;
        }
        let listing = Ask::List(File {
            root: Root::Job,
            path: String::new(),
        });
        let Answer::Entries(entries) = line.ask(&listing).await? else {
            return Err(out_of_turn());
        };
        let top = home
            .join(outputs::results(transfers, &shared.job))
            .join(self.site.replace('/', "_"));
        // Patterns are paths below the working directory, which may be one in this directory.
        let below = self.directory.as_deref();
        let within = |path: &str| below.and_then(|below| Some(path.strip_prefix(below)?.strip_prefix('/')?.to_owned()));
        let meant = |pattern: &Pattern, path: &str| {
            pattern.matches(path) || within(path).is_some_and(|path| pattern.matches(&path))
        };
        let wanted = |path: &str| transfers.outputs.iter().any(|pattern| meant(pattern, path));
        let is_taken = |path: &str| transfers.taken.iter().any(|t| !t.at_site && t.path == path);
        let minutes = minutes(shared.options.lease);
        let left = left::told(&entries, |path| wanted(path) || is_taken(path), &self.at(), minutes);
        let files = entries.iter().filter(|e| e.kind == EntryKind::File && wanted(&e.path));
        let files: Vec<_> = files.collect();
        outputs::fetch_listed(line, &files, &top, tell).await?;
        let mut paths: Vec<String> = files.iter().map(|e| e.path.clone()).collect();
        if let Some(before) = &self.before {
            paths.extend(outputs::copy_own(before, &transfers.outputs, &top)?);
        }
        let missing = transfers
            .outputs
            .iter()
            .filter(|pattern| !paths.iter().any(|path| meant(pattern, path)));
        let missing: Vec<String> = missing.map(|pattern| pattern.text().to_owned()).collect();
        let elsewhere = self.elsewhere().filter(|_| !missing.is_empty());
        Ok(Fetched {
            missing,
            files: paths.len(),
            left: left.or(elsewhere),
        })
    }
}

fn minutes(time: Duration) -> u64 {
    time.as_secs().div_ceil(60)
}

/// What was fetched from the directory of a subjob.
struct Fetched {
    /// Patterns that nothing matches.
    missing: Vec<String>,
    /// How many files.
    files: usize,
    /// What is said of those that nothing fetches.
    left: Option<String>,
}

/// What became of the directory of a subjob.
#[derive(Debug, Default)]
pub(crate) struct Emptied {
    /// Name of the subjob.
    pub(crate) site: String,
    /// Why something of it is not here.
    pub(crate) problem: Option<String>,
    /// What the user should know of files that stay there.
    pub(crate) left: Option<String>,
    /// Patterns of outputs that nothing matches there.
    pub(crate) missing: Vec<String>,
    /// How many outputs are here.
    pub(crate) files: usize,
}
