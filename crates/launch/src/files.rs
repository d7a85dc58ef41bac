// SPDX-License-Identifier: Apache-2.0
//! Files of a job: what is brought to each subjob's directory before its start, and what is fetched from there after its end.
//!
//! The service of a site lives as long as the job, because the directory ends with it.

use crate::connection::Failure;
use crate::fetch;
use crate::service::{Service, out_of_turn};
use crate::sharing::Access;
use crate::staging::{self, Staged};
use crate::transfer::Line;
use isthmus_job::catalogue::Catalogue;
use isthmus_job::transfer::{Input, Transfers};
use isthmus_job::{Contact, Subjob};
use isthmus_stage::local;
use isthmus_wire::service::{Answer, Ask, EntryKind, File, Placed, Root};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How often a service hears of us while the job runs.
const PING: Duration = Duration::from_secs(30);
/// Where outputs go unless the job says so.
const RESULTS: &str = "isthmus-results";

/// A file of a subjob's directory, or a directory in it.
enum Item {
    Directory(String),
    File {
        file: Staged,
        path: String,
        executable: bool,
    },
}

/// The directories of all subjobs.
#[derive(Default)]
pub(crate) struct Directories(Mutex<Vec<Kept>>);

/// A directory at a site, with the service that keeps it.
struct Kept {
    site: String,
    contact: Contact,
    transfers: Transfers,
    stop: oneshot::Sender<()>,
    service: JoinHandle<Option<Service>>,
}

/// What filling a directory needs to know.
pub(crate) struct Filling<'a> {
    pub(crate) access: &'a Access,
    pub(crate) catalogue: &'a Catalogue,
    /// Where relative paths at home begin.
    pub(crate) home: &'a Path,
    pub(crate) subjob: &'a Subjob,
}

impl Filling<'_> {
    /// Brings all inputs and makes the directory. Its path there, and what the user should know.
    pub(crate) async fn fill(
        &self,
        kept: &Directories,
        tell: &(dyn Fn(String) + Sync),
    ) -> Result<(String, Option<String>), Failure> {
        let subjob = self.subjob;
        let mut items = Vec::new();
        for input in &subjob.files.inputs {
            self.collect(input, &mut items, tell).await?;
        }
        let mut line = Line::open(self.access, &subjob.contact, &subjob.setup).await?;
        let total: u64 = items.iter().map(Item::size).sum();
        let mut before = 0;
        for item in &items {
            if let Item::File { file, .. } = item {
                let shown = |done: u64, _| tell(progress(before + done, total));
                line.put(&file.path, &file.name, &file.manifest, &shown).await?;
                before += file.size;
            }
        }
        let cuts = (line.cuts > 0).then(|| {
            let (sent, connections) = (line.sent(), line.cuts + 1);
            format!("{total} bytes of inputs staged; sent {sent} bytes over {connections} connections")
        });
        let mut service = line.into_service()?;
        let Answer::Path(directory) = service.ask(&Ask::Enter).await? else {
            return Err(out_of_turn());
        };
        for item in items {
            service.perform(&item.placing()).await?;
        }
        kept.keep(subjob, service);
        Ok((directory, cuts))
    }

    /// What an input consists of; one that is not at home is brought here first.
    async fn collect(
        &self,
        input: &Input,
        items: &mut Vec<Item>,
        tell: &(dyn Fn(String) + Sync),
    ) -> Result<(), Failure> {
        let path = fetch::to_home(self.access, self.catalogue, self.home, &input.source, tell).await?;
        let walked = {
            let path = path.clone();
            tokio::task::spawn_blocking(move || local::walk(&path, true)).await
        };
        let cannot = |error: String| {
            Failure::new(
                format!("input '{}': {error}", input.source),
                "inputs are looked for from here",
            )
        };
        let entries = walked
            .map_err(|e| cannot(e.to_string()))?
            .map_err(|e| cannot(e.to_string()))?;
        let single = matches!(entries.as_slice(), [entry] if entry.path.is_empty());
        if !single && !input.name.is_empty() {
            items.push(Item::Directory(input.name.clone()));
        }
        for entry in entries {
            let name = match (input.name.as_str(), entry.path.as_str()) {
                ("", below) => below.to_owned(),
                (name, "") => name.to_owned(),
                (name, below) => format!("{name}/{below}"),
            };
            let here = if entry.path.is_empty() {
                path.clone()
            } else {
                path.join(&entry.path)
            };
            match entry.kind {
                EntryKind::Directory => items.push(Item::Directory(name)),
                EntryKind::Other => {}
                EntryKind::File => items.push(Item::File {
                    file: staging::prepare(here).await?,
                    path: name,
                    executable: entry.executable,
                }),
            }
        }
        Ok(())
    }
}

impl Item {
    fn size(&self) -> u64 {
        match self {
            Self::Directory(_) => 0,
            Self::File { file, .. } => file.size,
        }
    }

    fn placing(self) -> Ask {
        match self {
            Self::Directory(path) => Ask::MakeDirectory(File { root: Root::Job, path }),
            Self::File { file, path, executable } => Ask::Link(Placed {
                hash: file.hash,
                name: file.name,
                size: file.size,
                path,
                executable,
            }),
        }
    }
}

/// So much of a transfer is done, for people.
pub(crate) fn progress(done: u64, total: u64) -> String {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    match total {
        0 => String::new(),
        total => format!("{:.0} of {:.0} MiB", mib(done), mib(total)),
    }
}

impl Directories {
    fn keep(&self, subjob: &Subjob, mut service: Service) {
        let (stop, mut stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = &mut stopped => return Some(service),
                    () = tokio::time::sleep(PING) => {}
                }
                if service.perform(&Ask::Ping).await.is_err() {
                    return None;
                }
            }
        });
        let kept = Kept {
            site: subjob.site.clone(),
            contact: subjob.contact.clone(),
            transfers: subjob.files.clone(),
            stop,
            service: task,
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(kept);
    }

    /// Fetches the outputs of all subjobs at once and removes the directories. What went wrong.
    pub(crate) async fn empty(&self, access: &Access, home: &Path, tell: &(dyn Fn(String) + Sync)) -> Vec<String> {
        let kept = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut problems = Vec::new();
        for one in kept {
            let site = one.site.clone();
            if let Err(failure) = one.empty(access, home, tell).await {
                problems.push(format!(
                    "site '{site}': its outputs could not be fetched: {}",
                    failure.problem
                ));
            }
        }
        problems
    }
}

impl Kept {
    async fn empty(self, access: &Access, home: &Path, tell: &(dyn Fn(String) + Sync)) -> Result<(), Failure> {
        let _ = self.stop.send(());
        let service = self.service.await.ok().flatten();
        let mut line = Line::over(access, &self.contact, service.ok_or_else(Failure::closed)?);
        let fetched = self.transfers.fetch(&mut line, home, &self.site, tell).await;
        if let Ok(service) = line.into_service() {
            service.leave().await;
        }
        fetched
    }
}

/// What a subjob gives back.
trait Outputs {
    async fn fetch(
        &self,
        line: &mut Line<'_>,
        home: &Path,
        site: &str,
        tell: &(dyn Fn(String) + Sync),
    ) -> Result<(), Failure>;
}

impl Outputs for Transfers {
    async fn fetch(
        &self,
        line: &mut Line<'_>,
        home: &Path,
        site: &str,
        tell: &(dyn Fn(String) + Sync),
    ) -> Result<(), Failure> {
        if self.outputs.is_empty() {
            return Ok(());
        }
        let listing = Ask::List(File {
            root: Root::Job,
            path: String::new(),
        });
        let Answer::Entries(entries) = line.ask(&listing).await? else {
            return Err(out_of_turn());
        };
        let top = home
            .join(self.results.as_deref().unwrap_or(RESULTS))
            .join(site.replace('/', "_"));
        let wanted = |path: &str| self.outputs.iter().any(|pattern| pattern.matches(path));
        let files: Vec<_> = entries
            .into_iter()
            .filter(|e| e.kind == EntryKind::File && wanted(&e.path))
            .collect();
        let total: u64 = files.iter().map(|e| e.size).sum();
        let mut before = 0;
        for entry in files {
            isthmus_job::transfer::check_relative(&entry.path)
                .map_err(|why| Failure::new(format!("the site names a file '{}': {why}", entry.path), ""))?;
            let here: PathBuf = top.join(&entry.path);
            let parent = here.parent().unwrap_or(&top);
            std::fs::create_dir_all(parent)
                .map_err(|e| Failure::new(format!("cannot create '{}': {e}", parent.display()), ""))?;
            let file = File {
                root: Root::Job,
                path: entry.path,
            };
            let shown = |done: u64, _| tell(progress(before + done, total));
            line.get(&file, &here, entry.executable, &shown).await?;
            before += entry.size;
        }
        Ok(())
    }
}
