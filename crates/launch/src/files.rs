// SPDX-License-Identifier: Apache-2.0
//! Files of a job: what is brought to each subjob's directory before its start. What is fetched from there after its
//! end: `emptying.rs`.
//!
//! A service of the site is kept as long as the job lives; the directory outlives it for a while (`workspace.rs`).

use crate::directories::KeptDirectory;
use crate::left::Before;
use crate::shared::Shared;
use isthmus_job::scratch::MARK;
use isthmus_job::transfer::{Given, Input, Pattern};
use isthmus_job::{Contact, Subjob};
use isthmus_reach::Failure;
use isthmus_reach::Uncopied;
use isthmus_reach::fetch;
use isthmus_reach::service::out_of_turn;
use isthmus_reach::staging::{self, Staged};
use isthmus_reach::transfer::{Line, progress};
use isthmus_reach::workspace::{Attended, Terms, Workspace};
use isthmus_stage::{local, words};
use isthmus_wire::service::{Answer, Ask, EntryKind, File, Placed, Root};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file of a subjob's directory, or a directory in it.
enum Item {
    Directory(String),
    File {
        file: Staged,
        path: String,
        executable: bool,
    },
    /// A file that gets its place in the file system of the site.
    Given {
        file: Staged,
        path: String,
        executable: bool,
    },
}

/// A directory that has been filled.
#[derive(Clone)]
pub(crate) struct Filled {
    /// Its path there.
    pub(crate) files: String,
    /// The path of the scratch directory, if there is one.
    pub(crate) scratch: Option<String>,
    /// What the user should know.
    pub(crate) notice: Option<String>,
}

/// What filling a directory needs to know.
pub(crate) struct Filling<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) number: usize,
    pub(crate) subjob: &'a Subjob,
}

impl Filling<'_> {
    /// Brings all inputs and makes the directory.
    pub(crate) async fn fill(&self, tell: &(dyn Fn(String) + Sync)) -> Result<Filled, Failure> {
        let subjob = self.subjob;
        let (mut uncopied, mut unfetched) = (Uncopied::default(), Uncopied::default());
        let items = self.items([&mut uncopied, &mut unfetched], tell).await?;
        let access = &self.shared.access;
        let mut line = Line::open(access, &subjob.contact, &subjob.setup).await?;
        let total: u64 = items.iter().map(Item::size).sum();
        let mut before = 0;
        // What has its place already.
        let mut there = Vec::new();
        for (number, item) in items.iter().enumerate() {
            if let Item::Given { file, path, executable } = item {
                if !path.contains(MARK) && line.holds(path, *executable, &file.manifest).await? {
                    before += file.size;
                    there.push(number);
                    continue;
                }
            }
            if let Item::File { file, .. } | Item::Given { file, .. } = item {
                let shown = |done: u64, _| tell(progress(before + done, total));
                line.put(&file.path, &file.name, &file.manifest, &shown).await?;
                before += file.size;
            }
        }
        let cuts = (line.cuts > 0).then(|| {
            let (sent, connections) = (line.sent(), line.cuts + 1);
            format!("{total} bytes of inputs staged; sent {sent} bytes over {connections} connections")
        });
        // Where they work in the user's own directory, they see all of it.
        let uncopied = uncopied.note().filter(|_| !works_at_home(subjob));
        let notes: Vec<String> = cuts.into_iter().chain(uncopied).chain(unfetched.note()).collect();
        let options = &self.shared.options;
        let workspace = line.make_workspace(self.shared.terms()).await?;
        let scratch = match &subjob.files.scratch {
            Some(below) => Some(make_scratch(&mut line, below).await?),
            None => None,
        };
        let subjob = &scratch
            .as_ref()
            .map_or_else(|| subjob.clone(), |path| subjob.with_scratch(path));
        for (_, item) in (0..).zip(items).filter(|(number, _)| !there.contains(number)) {
            line.perform(&item.placing(scratch.as_deref())).await?;
        }
        let place = (subjob.contact.clone(), subjob.setup.clone());
        let service = line.into_service()?;
        let before = match works_at_home(subjob) {
            true => Some(own_files(
                &work_here(subjob, &options.directory),
                &subjob.files.outputs,
            )?),
            false => None,
        };
        self.shared.directories.keep(KeptDirectory {
            number: self.number,
            site: subjob.site.clone(),
            contact: subjob.contact.clone(),
            setup: subjob.setup.clone(),
            transfers: subjob.files.clone(),
            directory: subjob.directory.clone(),
            workspace: workspace.clone(),
            attended: Some(Attended::begin(
                Arc::clone(access),
                place,
                workspace.clone(),
                Some(service),
            )),
            before,
        });
        Ok(Filled {
            files: workspace.files,
            scratch,
            notice: (!notes.is_empty()).then(|| notes.join("\n")),
        })
    }

    async fn collect_given(&self, given: &Given, tell: &(dyn Fn(String) + Sync)) -> Result<Item, Failure> {
        let (access, options) = (&self.shared.access, &self.shared.options);
        let fetched = fetch::to_home(access, &options.catalogue, &options.directory, &given.source, tell).await?;
        let here = fetched.path;
        if !here.is_file() {
            let problem = format!("input '{}' is not a file: '{}'", given.source, here.display());
            return Err(Failure::new(
                problem,
                "directories have to be in the directory of the subjob",
            ));
        }
        let executable = rustix::fs::access(&here, rustix::fs::Access::EXEC_OK).is_ok();
        Ok(Item::Given {
            file: staging::prepare(here).await?,
            path: given.path.clone(),
            executable,
        })
    }

    /// What all inputs consist of, and what cannot be copied: here, and from where it was fetched.
    async fn items(
        &self,
        [uncopied, unfetched]: [&mut Uncopied; 2],
        tell: &(dyn Fn(String) + Sync),
    ) -> Result<Vec<Item>, Failure> {
        let mut items = Vec::new();
        for input in &self.subjob.files.inputs {
            self.collect(input, &mut items, [&mut *uncopied, &mut *unfetched], tell)
                .await?;
        }
        for given in &self.subjob.files.given {
            items.push(self.collect_given(given, tell).await?);
        }
        check_names(&items)?;
        Ok(items)
    }

    /// What an input consists of; one that is not at home is brought here first. What cannot be copied: here, and from
    /// where it was fetched.
    async fn collect(
        &self,
        input: &Input,
        items: &mut Vec<Item>,
        [uncopied, unfetched]: [&mut Uncopied; 2],
        tell: &(dyn Fn(String) + Sync),
    ) -> Result<(), Failure> {
        let (access, options) = (&self.shared.access, &self.shared.options);
        let fetched = fetch::to_home(access, &options.catalogue, &options.directory, &input.source, tell).await?;
        unfetched.add_all(&input.name, &fetched.uncopied);
        let path = fetched.path;
        let walked = {
            let path = path.clone();
            tokio::task::spawn_blocking(move || local::walk(&path, true)).await
        };
        let cannot = |error: String| {
            Failure::new(
                format!("input '{}': {error}", input.source),
                format!("check the path; relative ones start at {}", options.directory.display()),
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
                path.join(words::path(&entry.path))
            };
            match entry.kind {
                EntryKind::Directory => items.push(Item::Directory(name)),
                EntryKind::Other if entry.path.is_empty() && !works_at_home(self.subjob) => {
                    return Err(isthmus_reach::without_content(&format!("input '{}'", input.source)));
                }
                EntryKind::Other => uncopied.add(&name),
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
            Self::File { file, .. } | Self::Given { file, .. } => file.size,
        }
    }

    fn placing(self, scratch: Option<&str>) -> Ask {
        match self {
            Self::Directory(path) => Ask::MakeDirectory(File { root: Root::Job, path }),
            Self::File { file, path, executable } => Ask::Link(placed(file, path, executable)),
            Self::Given { file, path, executable } => {
                let path = scratch.map_or_else(|| path.clone(), |scratch| path.replace(MARK, scratch));
                Ask::Copy(placed(file, path, executable))
            }
        }
    }
}

/// Whether each name in the directory of the subjob is for one thing.
fn check_names(items: &[Item]) -> Result<(), Failure> {
    let mut seen = BTreeMap::new();
    for item in items {
        let (path, content) = match item {
            Item::Directory(path) => (path, None),
            Item::File { file, path, .. } => (path, Some((&file.hash, &file.name))),
            // These have places of their own at the site.
            Item::Given { .. } => continue,
        };
        if seen.insert(path, content).is_some_and(|other| other != content) {
            return Err(Failure::new(
                format!("two inputs have the name '{path}'"),
                "give one of them another name: SOURCE => NAME",
            ));
        }
    }
    Ok(())
}

async fn make_scratch(line: &mut Line<'_>, below: &str) -> Result<String, Failure> {
    let (root, path) = (Root::Site, below.to_owned());
    match line.ask(&Ask::Scratch(File { root, path })).await {
        Ok(Answer::Path(path)) => Ok(path),
        Ok(_) => Err(out_of_turn()),
        Err(failure) if failure.is_closed() => Err(failure),
        Err(failure) => Err(Failure::new(
            format!("its scratch directory: {}", failure.problem),
            "scratchDir names a directory there in which you may make others",
        )),
    }
}

fn placed(file: Staged, path: String, executable: bool) -> Placed {
    Placed {
        hash: file.hash,
        name: file.name,
        size: file.size,
        path,
        executable,
    }
}

/// Whether the processes of a subjob with files work in the user's own directory, or another one that the user names
/// here. What RSL brings and takes back by relative paths is in the directory of the subjob.
pub(crate) fn works_at_home(subjob: &Subjob) -> bool {
    subjob.contact == Contact::Home && subjob.files.taken.is_empty()
}

/// Where the processes of this machine work, as their agent sees it.
fn work_here(subjob: &Subjob, here: &Path) -> PathBuf {
    let home = || std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    match subjob.directory.as_deref() {
        None => here.to_owned(),
        Some("~") => home(),
        Some(named) => match named.strip_prefix("~/") {
            Some(below) => home().join(words::path(below)),
            None => here.join(words::path(named)),
        },
    }
}

fn own_files(directory: &Path, patterns: &[Pattern]) -> Result<Before, Failure> {
    Before::look(directory, patterns).map_err(|e| {
        Failure::new(
            format!("cannot look for outputs: {e}"),
            "let --output name files more closely, for example results/*.dat",
        )
    })
}

impl Shared {
    /// How the directories of the job are kept.
    fn terms(&self) -> Terms {
        Terms {
            lease: self.options.lease,
            silence: self.options.silence,
        }
    }

    /// The directory of a subjob is at its site already. What was in the user's own directory before is not known any
    /// more: outputs stay there.
    pub(crate) fn find_directory(&self, number: usize, subjob: &Subjob, files: &str) {
        let Some(workspace) = Workspace::at(files.to_owned(), self.terms()) else {
            return;
        };
        let place = (subjob.contact.clone(), subjob.setup.clone());
        let attended = Attended::begin(Arc::clone(&self.access), place, workspace.clone(), None);
        self.directories.keep(KeptDirectory {
            number,
            site: subjob.site.clone(),
            contact: subjob.contact.clone(),
            setup: subjob.setup.clone(),
            transfers: subjob.files.clone(),
            directory: subjob.directory.clone(),
            workspace,
            attended: Some(attended),
            before: None,
        });
    }
}
