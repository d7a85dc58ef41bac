// SPDX-License-Identifier: Apache-2.0
//! `isthmus cp`: files between home and sites, and between sites; `isthmus cache`: what sites keep.

use crate::diagnostic::at;
use crate::diagnostic::refuse;
use crate::json;
use crate::links::table;
use crate::reach;
use crate::sites::found::size;
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use isthmus_job::catalogue::{Catalogue, Entry};
use isthmus_job::transfer::Location;
use isthmus_job::{JobError, JobErrors, quantity};
use isthmus_reach::{Access, Failure, Remote, Tally, here};
use isthmus_stage::content::hex;
use isthmus_stage::words;
use isthmus_wire::service::CacheVerb;
use serde_json::json;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Copy files and directories between this machine and sites
///
/// Interrupted copies continue where they stopped. Files that are already there are not sent again.
#[derive(Args, Debug)]
pub(crate) struct Copy {
    /// What to copy: paths here, or isthmus://SITE/PATH (isthmus://SITE/~/PATH: below the home directory there)
    #[arg(required = true, value_name = "SOURCE")]
    sources: Vec<String>,
    /// Where to; for several sources a directory
    target: String,
    /// Directories too, which are copied in any case
    #[arg(short, long, visible_short_alias = 'R')]
    recursive: bool,
    /// As scp and rsync have them: what they keep of files is kept, but for owners and times
    #[arg(short = 'p', short_aliases = ['a', 't'], long = "preserve", aliases = ["archive", "times"], action = clap::ArgAction::Count, hide = true)]
    preserve: u8,
    /// As scp and rsync have them; progress is shown on terminals, and all connections may compress
    #[arg(short = 'v', short_aliases = ['q', 'z', 'C'], long = "progress", aliases = ["verbose", "quiet", "compress", "partial"], action = clap::ArgAction::Count, hide = true)]
    manner: u8,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// ssh client to use [default: $ISTHMUS_SSH or ssh]
    #[arg(long, value_name = "COMMAND")]
    ssh: Option<String>,
}

/// `isthmus cp`.
pub(crate) fn copy(arguments: &Copy) -> ExitCode {
    match perform(arguments) {
        Ok(tally) => {
            if arguments.preserve > 0 {
                let note = JobError::new("owners and times of files are not kept");
                crate::diagnostic::note(&note.hint("isthmus cp keeps contents, names and the right to execute"));
            }
            if let Some(note) = tally.uncopied.note() {
                crate::diagnostic::note(&JobError::new(note));
            }
            if arguments.json {
                let fields = json!({
                    "files": tally.files, "size_bytes": tally.bytes, "sent_bytes": tally.sent, "reconnections": tally.cuts, "uncopied": tally.uncopied.count(),
                });
                json::print("cp", fields);
            }
            ExitCode::SUCCESS
        }
        Err(errors) => refuse(&errors),
    }
}

fn perform(arguments: &Copy) -> Result<Tally, JobErrors> {
    let catalogue = reach::catalogue()?;
    let access = reach::access(arguments.ssh.as_deref())?;
    let sources = arguments.sources.iter().map(|source| place(source));
    let sources = sources.collect::<Result<Vec<_>, _>>()?;
    let target = match place(&arguments.target)? {
        one if sources.len() == 1 => one,
        several => directory(several)?,
    };
    let ends = Ends {
        access: &access,
        catalogue: &catalogue,
    };
    let mut tally = Tally::default();
    for source in &sources {
        tally.add(&ends.copy(source, &target)?);
    }
    Ok(tally)
}

/// What a word names. One as scp has them is no file here, unless there is one.
fn place(word: &str) -> Result<Location, JobError> {
    let parsed = Location::parse(word)?;
    let (site, path) = match word.split_once(':') {
        // An address of its own has two slashes.
        Some((site, path)) if !site.is_empty() && !site.contains('/') && !path.starts_with("//") => (site, path),
        _ => return Ok(parsed),
    };
    if !matches!(parsed, Location::Home(_)) || words::path(word).symlink_metadata().is_ok() {
        return Ok(parsed);
    }
    if site == "isthmus" {
        let error = JobError::new(format!("'{word}' is not an address"));
        return Err(error.hint("write the address of a file at a site as isthmus://SITE/PATH"));
    }
    let there = match path.strip_prefix('/') {
        Some(path) => path.to_owned(),
        None if path.starts_with("~") => path.to_owned(),
        None => format!("~/{path}"),
    };
    if site == "home" {
        let error = JobError::new(format!("there is no file '{word}' here"));
        return Err(error.hint(format!("home is this machine: write {path}")));
    }
    let error = JobError::new(format!("there is no file '{word}' here"));
    Err(error.hint(format!(
        "of a site, isthmus cp writes it isthmus://{site}/{there}; a file here whose name has a colon is ./{word}"
    )))
}

/// A place for several sources.
fn directory(target: Location) -> Result<Location, JobError> {
    match target {
        // The slash says so there.
        Location::Site(site, path) if !path.ends_with('/') => Ok(Location::Site(site, format!("{path}/"))),
        Location::Home(path) if !at_home(&path)?.is_dir() => {
            let error = JobError::new(format!("there is no directory '{path}' here for several sources"));
            Err(error.hint("make it, or name one that is there"))
        }
        other => Ok(other),
    }
}

fn at_home(name: &str) -> Result<PathBuf, JobError> {
    here(Path::new(""), name).map_err(|failure| JobError::new(failure.problem).hint(failure.hint))
}

/// A file from one place at home to another, as names of sites may come to.
fn inside(from: &Path, to: &Path) -> Result<Tally, JobError> {
    if from.is_dir() {
        let error = JobError::new(format!("'{}' is a directory here, and so is its copy", from.display()));
        return Err(error.hint("inside this machine the system's own cp -r copies directories"));
    }
    let target = match (to.is_dir(), from.file_name()) {
        (true, Some(name)) => to.join(name),
        _ => to.to_owned(),
    };
    let same = |a: &Path, b: &Path| {
        a.canonicalize()
            .ok()
            .zip(b.canonicalize().ok())
            .is_some_and(|(a, b)| a == b)
    };
    if same(from, &target) {
        return Err(JobError::new(format!(
            "'{}' and '{}' are the same file",
            from.display(),
            target.display()
        )));
    }
    let copied = std::fs::copy(from, &target);
    let bytes = copied.map_err(|e| {
        let error = format!("cannot copy '{}' to '{}': {e}", from.display(), target.display());
        JobError::new(error).accident()
    })?;
    Ok(Tally {
        files: 1,
        bytes,
        ..Tally::default()
    })
}

struct Ends<'a> {
    access: &'a Access,
    catalogue: &'a Catalogue,
}

impl Ends<'_> {
    fn at<T>(&self, site: &str, work: impl FnOnce(&Remote<'_>) -> Result<T, Failure>) -> Result<T, JobError> {
        let entry: Entry = reach::site(self.catalogue, site)?;
        let remote = Remote {
            access: self.access,
            contact: &entry.contact,
            setup: &entry.setup,
        };
        work(&remote).map_err(|failure| at(site, &failure))
    }

    /// Fetching `from`. What stands for several names is one name at a site.
    fn fetched<T>(from: &str, fetched: Result<T, JobError>) -> Result<T, JobError> {
        let pattern = from.contains(['*', '?', '[']);
        fetched.map_err(|error| match error.hint {
            None if pattern => error.hint("names of a site are taken as they are, without * and ?: copy the directory"),
            _ => error,
        })
    }

    fn copy(&self, source: &Location, target: &Location) -> Result<Tally, JobErrors> {
        Ok(match (source, target) {
            (Location::Home(from), Location::Site(site, to)) => self.put(&at_home(from)?, site, to)?,
            (Location::Site(site, from), Location::Home(to)) => self.get(site, from, &at_home(to)?)?,
            (Location::Site(first, from), Location::Site(second, to)) => self.across(first, from, second, to)?,
            (Location::Home(from), Location::Home(to)) => inside(&at_home(from)?, &at_home(to)?)?,
            _ => {
                let error = JobError::new("this kind of address cannot be copied from or to");
                let hint = "isthmus cp knows paths and isthmus://SITE/PATH; inputs of jobs may be web addresses too";
                return Err(error.hint(hint).into());
            }
        })
    }

    fn put(&self, from: &Path, site: &str, to: &str) -> Result<Tally, JobError> {
        let progress = Bar::new();
        self.at(site, |remote| {
            remote.put(from, to, &|name, done, all| progress.show(name, done, all))
        })
    }

    fn get(&self, site: &str, from: &str, to: &Path) -> Result<Tally, JobError> {
        let progress = Bar::new();
        let fetched = self.at(site, |remote| {
            remote.get(from, to, &|name, done, all| progress.show(name, done, all))
        });
        Self::fetched(from, fetched)
    }

    /// From one site to another, through a private directory at home: they need not reach each other for that.
    fn across(&self, first: &str, from: &str, second: &str, to: &str) -> Result<Tally, JobError> {
        let cannot = |e: std::io::Error| {
            JobError::new(format!("cannot make a directory for files that are being copied: {e}")).accident()
        };
        let none =
            |why| JobError::new(format!("{why}: there is no directory for files that are being copied")).accident();
        let base = isthmus_stage::cache::directory().map_err(none)?;
        std::fs::create_dir_all(&base).map_err(cannot)?;
        let way = isthmus_stage::guarded::Guarded::in_cache(&base).map_err(cannot)?;
        let from_name = words::path(from.trim_end_matches('/'));
        let name = from_name.file_name();
        let name = name.ok_or_else(|| JobError::new(format!("'{from}' names no file")))?;
        let here = way.path().join(name);
        let fetched = self.get(first, from, &here)?;
        let sent = self.put(&here, second, to)?;
        Ok(Tally {
            sent: fetched.sent + sent.sent,
            cuts: fetched.cuts + sent.cuts,
            uncopied: fetched.uncopied,
            ..sent
        })
    }
}

/// A progress bar on a terminal.
struct Bar(Option<ProgressBar>);

impl Bar {
    fn new() -> Self {
        let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}");
        Self(std::io::stderr().is_terminal().then(|| {
            let progress = ProgressBar::new(0);
            progress.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            progress
        }))
    }

    fn show(&self, name: &str, done: u64, all: u64) {
        if let Some(progress) = &self.0 {
            progress.set_message(crate::diagnostic::plain(name));
            progress.set_length(all);
            progress.set_position(done);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(progress) = &self.0 {
            progress.finish_and_clear();
        }
    }
}

/// List, limit and clear the file caches of sites
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Cache {
    #[command(subcommand)]
    verb: Option<CacheCommand>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand, Debug)]
enum CacheCommand {
    /// List the files
    List(Where),
    /// Remove what no job uses
    Clear(Where),
    /// Set the most that is kept; what was used longest ago goes first
    Limit {
        /// Size, as 20GiB
        size: String,
        #[command(flatten)]
        at: Where,
    },
}

#[derive(Args, Debug, Default)]
struct Where {
    /// Sites [default: home and all of the sites file]
    sites: Vec<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// ssh client to use [default: $ISTHMUS_SSH or ssh]
    #[arg(long, value_name = "COMMAND")]
    ssh: Option<String>,
}

/// `isthmus cache`.
pub(crate) fn cache(command: &Cache) -> ExitCode {
    let usual = Where {
        json: command.json,
        ..Where::default()
    };
    let outcome = match &command.verb {
        None => look_after(CacheVerb::List, &usual),
        Some(CacheCommand::List(at)) => look_after(CacheVerb::List, at),
        Some(CacheCommand::Clear(at)) => look_after(CacheVerb::Clear, at),
        Some(CacheCommand::Limit { size, at }) => limit(size)
            .map_err(JobErrors::from)
            .and_then(|size| look_after(CacheVerb::Limit(size), at)),
    };
    match outcome {
        Ok(code) => code,
        Err(errors) => refuse(&errors),
    }
}

/// The most that a cache keeps. A number alone would be bytes: `5` would throw away all that is there, which nobody
/// means.
fn limit(text: &str) -> Result<u64, JobError> {
    if !text.is_empty() && text != "0" && text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(JobError::new(format!("'{text}' has no unit")).hint(format!(
            "write {text}GiB or {text}MiB; `isthmus cache clear` removes what no job uses"
        )));
    }
    quantity::size(text)
}

fn look_after(verb: CacheVerb, at_sites: &Where) -> Result<ExitCode, JobErrors> {
    let catalogue = reach::catalogue()?;
    let access = reach::access(at_sites.ssh.as_deref())?;
    let ends = Ends {
        access: &access,
        catalogue: &catalogue,
    };
    let names = reach::named_sites(&catalogue, &at_sites.sites)?;
    let mut rows = vec![["site", "file", "size", "last used", "in use"].map(str::to_owned)];
    let (mut all, mut bad, mut sums) = (Vec::new(), false, Vec::new());
    for name in names {
        let (limit, files) = match ends.at(&name, |remote| remote.cache(verb)) {
            Ok(held) => held,
            Err(error) => {
                refuse(&error);
                bad = true;
                continue;
            }
        };
        let total: u64 = files.iter().map(|f| f.size).sum();
        sums.push(format!("{name}: {} of {}", size(total), size(limit)));
        for file in &files {
            let shown = if file.name.is_empty() { "(arriving)" } else { &file.name };
            let age = u32::try_from(file.age).unwrap_or(u32::MAX);
            let used = if file.used { "yes" } else { "" };
            rows.push([&name, shown, &size(file.size), &crate::rates::span(age), used].map(str::to_owned));
        }
        let files = files
            .iter()
            .map(|f| json!({ "name": f.name, "hash": hex(&f.hash), "size_bytes": f.size, "age_seconds": f.age, "used": f.used }));
        all.push(
            json!({ "site": name, "limit_bytes": limit, "size_bytes": total, "files": files.collect::<Vec<_>>() }),
        );
    }
    if at_sites.json {
        json::print("cache", json!({ "sites": all }));
    } else {
        if rows.len() > 1 {
            crate::print(&table(&rows));
        }
        sums.iter().for_each(|line| crate::print(line));
    }
    Ok(if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_scp_takes_is_told_in_our_words() {
        for (word, hint) in [
            ("lab:mesh.txt", "isthmus://lab/~/mesh.txt"),
            ("lab:~/mesh.txt", "isthmus://lab/~/mesh.txt"),
            ("me@lab:/data/x", "isthmus://me@lab/data/x"),
            ("home:mesh.txt", "write mesh.txt"),
            ("isthmus:lab/x", "isthmus://SITE/PATH"),
        ] {
            let error = super::place(word).unwrap_err();
            let told = error.hint.as_deref().unwrap_or_default();
            assert!(told.contains(hint) && !told.contains("~/~"), "{word}: {error}");
        }
    }

    #[test]
    fn a_limit_has_a_unit() {
        assert_eq!(super::limit("5GiB").ok(), Some(5 << 30));
        assert_eq!(super::limit("0").ok(), Some(0));
        for text in ["5", "00", "", "5 apples"] {
            assert!(super::limit(text).is_err(), "{text}");
        }
    }
}
