// SPDX-License-Identifier: Apache-2.0
//! The sites file: what is known of sites beside what the ssh configuration says of them.
//!
#![doc = concat!("```toml\n", include_str!("catalogue/example.toml"), "```")]

use crate::allocation;
use crate::asked;
use crate::attributes;
use crate::error::{JobError, JobErrors};
use crate::links::{self, Pins};
use crate::model::{Contact, Job, Subjob, check_count, to_count};
use crate::naming::check_name;
use crate::network;
use crate::source::{Source, Table};
use isthmus_wire::grid::{Allocation, Scheduler};
use isthmus_wire::word::counted;
use std::collections::BTreeMap;
use toml_edit::{Item, TableLike};

/// A sites file with everything that it can say.
pub const EXAMPLE: &str = include_str!("catalogue/example.toml");
/// Keys of a site.
pub const KEYS: [&str; 18] = [
    "account",
    "cache",
    "contact",
    "directives",
    "directory",
    "environment",
    "exclusive",
    "found",
    "lan",
    "limit",
    "modules",
    "mpi",
    "nodes",
    "ports",
    "processes",
    "queue",
    "scheduler",
    "setup",
];
const TOP_KEYS: [&str; 4] = ["level", "link", "process", "site"];
/// Most bytes of all set-up commands of a site.
const MAX_SETUP: usize = 16 << 10;
/// The variable that tells processes where to listen.
pub const PORTS: &str = isthmus_settings::PORTS.name;

/// All sites of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalogue {
    sites: BTreeMap<String, Entry>,
    links: Pins,
}

/// What is known of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// How to get there.
    pub contact: Contact,
    /// What its scheduler is asked for where the job does not say so.
    pub allocation: Option<Allocation>,
    /// Modules and commands before anything else.
    pub setup: Vec<String>,
    /// Variables for processes there.
    pub environment: Vec<(String, String)>,
    /// Where processes run.
    pub directory: Option<String>,
    /// Its local network.
    pub lan: Option<String>,
    /// Most processes of a job.
    pub processes: Option<u32>,
    /// First and last port to listen on.
    pub ports: Option<(u16, u16)>,
    /// Command of the vendor MPI that starts the processes; empty: whatever it is called there.
    pub mpi: Option<String>,
    /// What was found when it was looked at.
    pub found: Vec<(String, Value)>,
}

impl Entry {
    /// A site of which only the ssh configuration knows.
    pub fn bare(name: &str) -> Result<Self, JobError> {
        Ok(Self {
            contact: Contact::parse(name)?,
            allocation: None,
            setup: Vec::new(),
            environment: Vec::new(),
            directory: None,
            lan: None,
            processes: None,
            ports: None,
            mpi: None,
            found: Vec::new(),
        })
    }
}

/// Reads a sites file; `file` is its name for messages.
pub fn parse(text: &str, file: &str) -> Result<Catalogue, JobErrors> {
    let source = Source::new(text, file);
    let document = source.read("sites file")?;
    let top = Table::top(source, &document);
    let mut errors = JobErrors::default();
    top.check_all_keys(&TOP_KEYS, "a sites file", &mut errors);
    let mut catalogue = Catalogue::default();
    if let Some(sites) = errors.take(top.table("site", "tables: [site.NAME]")).flatten() {
        for (name, _) in sites.iter() {
            let table = errors.take(sites.table(name, "a table: [site.NAME]")).flatten();
            if let Some(entry) = table.and_then(|table| Entry::read(name, &table, &mut errors)) {
                catalogue.sites.insert(name.to_owned(), entry);
            }
        }
    }
    let links = errors.take(links::pins(&top, |name| Some(name.to_owned())));
    catalogue.links = links.unwrap_or_default();
    errors.or(Some(catalogue))
}

impl Entry {
    /// What a table says of the site of this name. All that is wrong with it goes to `errors`.
    fn read(name: &str, table: &Table<'_>, errors: &mut JobErrors) -> Option<Self> {
        let of_job = |key: &str| {
            let known = network::KEYS.iter().any(|(name, _)| *name == key);
            known.then(|| format!("jobs say it: --site {name}:N,{key}=..., or {key} in a job file"))
        };
        table.check_keys_and_places(&KEYS, "a site", &of_job, errors);
        errors.take(check_site_name(name).map_err(|e| table.at(e)));
        let contact = errors.take(match table.meaning("contact", Contact::parse) {
            Ok(None) => Contact::parse(name).map_err(|e| table.at(e)),
            Ok(Some(contact)) => Ok(contact),
            Err(error) => Err(error),
        });
        let modules = errors.take(table.texts("modules")).flatten().unwrap_or_default();
        let setup = errors.take(table.texts("setup")).flatten().unwrap_or_default();
        Some(Self {
            allocation: asked::read(table, name, None, errors),
            setup: errors.take(whole_setup(table, &modules, setup))?,
            environment: errors
                .take(table.texts_by_name("environment"))
                .flatten()
                .unwrap_or_default(),
            directory: errors.take(table.text("directory")).flatten(),
            lan: errors
                .take(table.meaning("lan", |lan| check_name("lan", lan).map(|()| lan.to_owned())))
                .flatten(),
            processes: errors.take(most(table, name)).flatten(),
            ports: errors.take(table.meaning("ports", ports)).flatten(),
            mpi: errors.take(table.text("mpi")).flatten(),
            found: found(table),
            contact: contact?,
        })
    }
}

/// What is run there first. The place of the cache comes before all.
fn whole_setup(table: &Table<'_>, modules: &[String], setup: Vec<String>) -> Result<Vec<String>, JobError> {
    let mut lines = table.point("modules", commands(modules, setup))?;
    if let Some(cache) = table.meaning("cache", cache)? {
        lines.insert(0, cache);
    }
    Ok(lines)
}

fn most(table: &Table<'_>, site: &str) -> Result<Option<u32>, JobError> {
    let Some(number) = table.integer("processes")? else {
        return Ok(None);
    };
    let count = to_count(number.max(0)).and_then(|count| check_count(site, count).map(|()| count));
    table.point("processes", count).map(Some)
}

/// `FIRST-LAST`.
pub fn ports(text: &str) -> Result<(u16, u16), JobError> {
    let number = |t: &str| t.trim().parse::<u16>().ok().filter(|p| *p > 0);
    let range = text.split_once('-').and_then(|(a, b)| Some((number(a)?, number(b)?)));
    range.filter(|(a, b)| a <= b).ok_or_else(|| {
        JobError::new(format!("'{text}' is not a range of ports")).hint("write for example \"50000-50100\"")
    })
}

/// A site is named in `--site NAME:N` and in `isthmus://NAME/PATH`.
pub fn check_site_name(name: &str) -> Result<(), JobError> {
    check_name("site", name)?;
    if name == "home" || name.contains([':', '=', ',', '/', '#']) || name.starts_with('-') {
        return Err(
            JobError::new(format!("'{name}' cannot be the name of a site in this file"))
                .hint("use letters, digits, '.', '_', '-' and '@'; 'home' is this machine"),
        );
    }
    Ok(())
}

/// `module load`s and commands as lines of a POSIX shell.
fn commands(modules: &[String], setup: Vec<String>) -> Result<Vec<String>, JobError> {
    let odd = |m: &&String| {
        m.is_empty() || m.starts_with('-') || !m.chars().all(|c| c.is_ascii_alphanumeric() || "._-+/@".contains(c))
    };
    if let Some(module) = modules.iter().find(odd) {
        return Err(JobError::new(format!("{module:?} cannot be the name of a module")));
    }
    let mut lines = Vec::new();
    if !modules.is_empty() {
        lines.push(MODULES.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.extend(modules.iter().map(|m| format!("module load {m} || exit 1")));
    }
    lines.extend(setup);
    if lines.iter().map(String::len).sum::<usize>() > MAX_SETUP || lines.iter().any(|l| l.contains('\0')) {
        return Err(
            JobError::new(format!("the set-up commands take more than {MAX_SETUP} bytes"))
                .hint("put them into a file there"),
        );
    }
    Ok(lines)
}

/// Where files of jobs are kept at the site: an absolute path, or one that begins with a variable there.
fn cache(place: &str) -> Result<String, JobError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+$@{}~ ".contains(c);
    if !place.starts_with(['/', '$']) || !place.chars().all(plain) || place.contains("$(") {
        let error = JobError::new(format!("{place:?} cannot be the place of the cache"));
        return Err(error.hint("write an absolute path; it may have variables of the site: \"/scratch/$USER\""));
    }
    Ok(format!("export XDG_CACHE_HOME=\"{place}\""))
}

/// A shell that is not interactive often does not know `module`.
const MODULES: &str = r"
    command -v module >/dev/null 2>&1 || for f in /etc/profile.d/modules.sh /etc/profile.d/lmod.sh
    /usr/share/modules/init/sh /usr/share/lmod/lmod/init/sh; do if test -r $f; then . $f; break; fi; done;
    command -v module >/dev/null 2>&1 || { echo isthmus: this site has no module command >&2; exit 1; }
";

fn found(table: &Table<'_>) -> Vec<(String, Value)> {
    let Some(found) = table.get("found").and_then(Item::as_table_like) else {
        return Vec::new();
    };
    found
        .iter()
        .map(|(key, item)| (key.to_owned(), Value::of(item)))
        .collect()
}

impl Catalogue {
    /// The site of this name.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.sites.get(name)
    }

    /// All sites, by name.
    pub fn sites(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.sites.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    /// The scheduler of a site.
    pub fn scheduler(&self, site: &str) -> Option<Scheduler> {
        self.get(site).and_then(|e| e.allocation.as_ref()).map(|a| a.scheduler)
    }

    /// How a site is reached: as the file says, or as the ssh configuration does.
    pub fn contact(&self, site: &str) -> Result<Contact, JobError> {
        self.get(site)
            .map_or_else(|| Contact::parse(site), |entry| Ok(entry.contact.clone()))
    }

    /// The job with what is known of its sites. A subjob is at a site of the file when the name of the site is its
    /// contact; what the job says itself counts.
    pub fn complete(&self, job: Job) -> Result<Job, JobError> {
        if self.sites.is_empty() && self.links == Pins::default() {
            return Ok(job);
        }
        let links = job.links().clone().over(self.links.clone());
        let mut subjobs = job.subjobs().to_vec();
        for subjob in &mut subjobs {
            self.complete_subjob(subjob)?;
        }
        Ok(job.with_subjobs(subjobs)?.with_links(links))
    }

    /// The same for one subjob.
    pub fn complete_subjob(&self, subjob: &mut Subjob) -> Result<(), JobError> {
        match &subjob.contact {
            Contact::Ssh(contact) => self.get(contact).map_or(Ok(()), |entry| entry.complete(subjob)),
            Contact::Home | Contact::Part(_) => Ok(()),
        }
    }
}

impl Entry {
    fn complete(&self, subjob: &mut Subjob) -> Result<(), JobError> {
        if let Some(most) = self.processes.filter(|most| *most < subjob.count) {
            let count = counted(subjob.count, "process");
            let problem = format!("site '{}': {count}, above its limit of {most}", subjob.site);
            return Err(JobError::new(problem).hint("ask for fewer, or raise 'processes' in the sites file"));
        }
        if subjob.lan == subjob.site || subjob.lan == subjob.contact.to_string() {
            subjob.lan = self.lan.clone().unwrap_or_else(|| subjob.lan.clone());
        }
        subjob.contact = self.contact.clone();
        subjob.setup.splice(0..0, self.setup.iter().cloned());
        let ports = self.ports.map(|(a, b)| (PORTS.to_owned(), format!("{a}-{b}")));
        subjob
            .environment
            .splice(0..0, ports.into_iter().chain(self.environment.iter().cloned()));
        if subjob.directory.is_none() {
            subjob.directory.clone_from(&self.directory);
        }
        match (&mut subjob.allocation, &self.allocation) {
            (Some(asked), Some(usual)) if asked.scheduler == usual.scheduler => fill(asked, usual),
            (None, Some(usual)) if !subjob.forks => {
                subjob.allocation = Some(Allocation {
                    nodes: usual.nodes.min(subjob.count),
                    ..usual.clone()
                })
            }
            _ => {}
        }
        if let Some(mpiexec) = self.mpi.as_ref().filter(|_| subjob.vendor().is_none()) {
            attributes::ask_vendor(&mut subjob.requests, mpiexec);
        }
        asked::of_requests(subjob);
        Ok(())
    }
}

/// What was not asked for is as usual.
fn fill(asked: &mut Allocation, usual: &Allocation) {
    for (text, other) in [(&mut asked.queue, &usual.queue), (&mut asked.account, &usual.account)] {
        if text.is_empty() {
            text.clone_from(other);
        }
    }
    if asked.limit == 0 {
        asked.limit = usual.limit;
    }
    asked.exclusive |= usual.exclusive;
    asked.directives.splice(0..0, usual.directives.iter().cloned());
}

/// A sites file as the user wrote it, to be changed without losing their comments.
#[derive(Debug)]
pub struct Edit(toml_edit::DocumentMut);

impl Edit {
    /// The file, which must be one without errors.
    pub fn new(text: &str, file: &str) -> Result<Self, JobErrors> {
        parse(text, file)?;
        let document = text
            .parse()
            .map_err(|_| JobError::new(format!("{file}: this is no TOML")))?;
        Ok(Self(document))
    }

    /// Sets what is not said yet of a site (what the user says now counts: see [`Edit::set`]). `found` replaces what
    /// was found before. What stands there stays, with its comments.
    pub fn describe(&mut self, site: &str, values: &[(&str, Value)], found: &[(String, Value)]) {
        let Some(entry) = self.entry(site) else { return };
        for (key, value) in values {
            if !entry.contains_key(key) {
                entry.insert(key, value.item());
            }
        }
        if !found.is_empty() {
            let mut table = toml_edit::Table::new();
            for (key, value) in found {
                table.insert(key, value.item());
            }
            entry.insert("found", Item::Table(table));
        }
    }

    /// Sets what the user says of a site, whatever stood there.
    pub fn set(&mut self, site: &str, values: &[(&str, Value)]) {
        let Some(entry) = self.entry(site) else { return };
        for (key, value) in values {
            match entry.get_mut(key).and_then(Item::as_value_mut) {
                // Comments beside it stay.
                Some(old) => {
                    let decor = old.decor().clone();
                    if let Item::Value(mut new) = value.item() {
                        *new.decor_mut() = decor;
                        *old = new;
                    }
                }
                None => {
                    entry.insert(key, value.item());
                }
            }
        }
    }

    fn entry(&mut self, site: &str) -> Option<&mut dyn TableLike> {
        let sites = self.0.entry("site").or_insert_with(|| {
            let mut sites = toml_edit::Table::new();
            sites.set_implicit(true);
            Item::Table(sites)
        });
        let entry = sites
            .as_table_like_mut()?
            .entry(site)
            .or_insert_with(|| Item::Table(toml_edit::Table::new()));
        entry.as_table_like_mut()
    }

    /// Removes a site. Says whether it was there.
    pub fn remove(&mut self, site: &str) -> bool {
        let sites = self.0.get_mut("site").and_then(Item::as_table_like_mut);
        sites.is_some_and(|sites| sites.remove(site).is_some())
    }

    /// The file's text.
    pub fn text(&self) -> String {
        self.0.to_string()
    }
}

/// A value for a sites file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A number.
    Number(i64),
    /// Yes or no.
    Flag(bool),
    /// Texts.
    Texts(Vec<String>),
}

impl Value {
    /// What stands in a file. What is of no kind of ours is text.
    fn of(item: &Item) -> Self {
        let texts = item
            .as_array()
            .map(|all| all.iter().map(|one| one.as_str().map(str::to_owned)));
        if let Some(texts) = texts.and_then(Iterator::collect) {
            return Self::Texts(texts);
        }
        match (item.as_str(), item.as_integer(), item.as_bool()) {
            (Some(text), ..) => Self::Text(text.to_owned()),
            (_, Some(number), _) => Self::Number(number),
            (.., Some(flag)) => Self::Flag(flag),
            _ => Self::Text(item.to_string().trim().to_owned()),
        }
    }

    fn item(&self) -> Item {
        match self {
            Self::Text(text) => toml_edit::value(text.as_str()),
            Self::Number(number) => toml_edit::value(*number),
            Self::Flag(flag) => toml_edit::value(*flag),
            Self::Texts(texts) => toml_edit::value(texts.iter().map(String::as_str).collect::<toml_edit::Array>()),
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Texts(texts) => f.write_str(&texts.join(", ")),
        }
    }
}

/// What may be set for a site from the command line: `KEY=VALUE`.
pub fn setting(text: &str) -> Result<(&'static str, Value), JobError> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let key = KEYS
        .into_iter()
        .find(|k| *k == name && !matches!(*k, "found" | "environment"));
    let key = key.ok_or_else(|| {
        let near = isthmus_settings::nearest(name, &KEYS);
        let hint = near.map_or_else(
            || format!("keys are {}", KEYS.join(", ")),
            |near| format!("did you mean '{near}'?"),
        );
        JobError::new(format!("'{name}' is nothing that can be set for a site")).hint(hint)
    })?;
    let list = || {
        value
            .split(',')
            .map(|v| v.trim().to_owned())
            .filter(|v| !v.is_empty())
            .collect()
    };
    let number = || {
        let number = value
            .parse()
            .map_err(|_| JobError::new(format!("{key}: '{value}' is not a number")))?;
        Ok(Value::Number(number))
    };
    Ok((
        key,
        match key {
            "nodes" | "processes" => number()?,
            "exclusive" => Value::Flag(flag(key, value)?),
            "modules" | "directives" => Value::Texts(list()),
            "setup" => Value::Texts(vec![value.to_owned()]),
            _ => {
                check_setting(key, value)?;
                Value::Text(value.to_owned())
            }
        },
    ))
}

fn flag(key: &str, value: &str) -> Result<bool, JobError> {
    match value {
        "" | "true" | "yes" => Ok(true),
        "false" | "no" => Ok(false),
        _ => Err(JobError::new(format!("{key}: '{value}' is neither yes nor no"))),
    }
}

fn check_setting(key: &str, value: &str) -> Result<(), JobError> {
    match key {
        "scheduler" => allocation::scheduler(value).map(|_| ()),
        "limit" => allocation::limit(value).map(|_| ()),
        "ports" => ports(value).map(|_| ()),
        "contact" => Contact::parse(value).map(|_| ()),
        "lan" => check_name("lan", value),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
