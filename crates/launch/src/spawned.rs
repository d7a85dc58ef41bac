// SPDX-License-Identifier: Apache-2.0
//! What a program asks for when it spawns processes, as subjobs of its job.

use isthmus_job::catalogue::Catalogue;
use isthmus_job::mpiexec::initial_errhandler;
use isthmus_job::sections::joined;
use isthmus_job::{Contact, Job, JobError, OnLoss, Program, Section, Subjob, Terms, sites};
use isthmus_reach::staging;
use isthmus_stage::words;
use isthmus_wire::boot::MAX_NODE_PROCESSES;
use isthmus_wire::question::{Kind, Refusal, SpawnProgram};
use isthmus_wire::word::counted;
use std::path::Path;

/// The variable with the port where the parents wait.
const PORT: &str = isthmus_settings::PARENT_PORT.name;

/// The error handler that processes begin with where nobody says another one.
const FATAL: &str = "mpi_errors_are_fatal";

/// A machine of the job, where more processes may be started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpawnHost<'a> {
    pub(crate) subjob: &'a Subjob,
    /// Name of the host of its agent.
    pub(crate) host: &'a str,
}

/// What is spawned at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spawn<'a> {
    /// The machines of the job, and which of them the one who asks is on.
    pub(crate) places: &'a [SpawnHost<'a>],
    pub(crate) own: usize,
    /// How many times something was spawned before.
    pub(crate) number: u32,
    /// Where the launcher looks for programs. What it does not have is the site's own.
    pub(crate) directory: &'a Path,
}

/// Those who want them wait for these processes at a port.
pub(crate) fn awaited_at(subjobs: &mut [Subjob], port: &str) {
    for subjob in subjobs {
        subjob.environment.push((PORT.to_owned(), port.to_owned()));
    }
}

/// Whether somebody waits for the processes of a subjob.
pub(crate) fn is_awaited(subjob: &Subjob) -> bool {
    subjob.environment.iter().any(|(name, _)| name == PORT)
}

/// Sites where the user lets the program start processes, beside those of the job: words as behind `--site`.
pub(crate) fn further(words: &str, catalogue: &Catalogue) -> Result<Vec<Subjob>, JobError> {
    let named: Result<Vec<_>, _> = words.split_whitespace().map(sites::SiteSpec::parse).collect();
    let named = named?;
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let template = sites::template(Program::one("(spawned)"), Vec::new());
    let mut subjobs = sites::job_of_sites(&named, None, &template)?.subjobs().to_vec();
    subjobs
        .iter_mut()
        .try_for_each(|subjob| catalogue.complete_subjob(subjob))?;
    Ok(subjobs)
}

/// The job that a program without a launcher wants to have: what it spawns, on this machine and at sites that the user
/// lets it reach. With it the number of processes of each part.
///
/// # Errors
/// Why it cannot be.
pub fn spawned_alone(port: &str, parts: &[SpawnProgram], catalogue: &Catalogue) -> Result<(Job, Vec<u32>), Refusal> {
    let words = isthmus_settings::SPAWN_SITES.read(std::env::var_os).unwrap_or_default();
    let further = further(&words, catalogue).map_err(|error| refused(format!("ISTHMUS_SPAWN_SITES: {error}")))?;
    let template = sites::template(Program::one("(spawned)"), Vec::new());
    let home = sites::SiteSpec::parse("home").and_then(|home| sites::job_of_sites(&[home], None, &template));
    let home = home.map_err(|error| refused(error.to_string()))?;
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let here = home.subjobs().iter().map(|subjob| SpawnHost { subjob, host: &host });
    let places: Vec<SpawnHost<'_>> = here
        .chain(further.iter().map(|subjob| SpawnHost { subjob, host: "" }))
        .collect();
    let directory = std::env::current_dir().unwrap_or_default();
    let spawn = Spawn {
        places: &places,
        own: 0,
        number: 0,
        directory: &directory,
    };
    let (mut subjobs, counts) = spawn.subjobs(parts)?;
    awaited_at(&mut subjobs, port);
    let job = Job::new(subjobs).map_err(|errors| refused(errors.to_string()))?;
    Ok((job, counts))
}

impl Spawn<'_> {
    /// The subjobs of these parts, and how many processes each part has. Parts that follow each other at one place are
    /// one subjob, where they share memory.
    pub(crate) fn subjobs(&self, parts: &[SpawnProgram]) -> Result<(Vec<Subjob>, Vec<u32>), Refusal> {
        let mut subjobs = Vec::new();
        let mut counts = Vec::new();
        for (appnum, part) in (0u32..).zip(parts) {
            let wishes = Wishes::of(part)?;
            let count = wishes.count(part)?;
            counts.push(count);
            if count > 0 {
                let place = self.place(&wishes)?;
                let mut subjob = self.subjob(place, part, &wishes, appnum, count);
                if let Some(on_loss) = wishes.on_loss(place)? {
                    on_loss.set(&mut subjob);
                }
                subjob.environment.push(wishes.handler()?);
                subjobs.push(subjob);
            }
        }
        let mut subjobs = joined(subjobs);
        for subjob in &mut subjobs {
            let count = subjob.count;
            // More nodes than processes are of no use.
            subjob
                .allocation
                .iter_mut()
                .for_each(|asked| asked.nodes = asked.nodes.min(count));
        }
        match subjobs.is_empty() {
            true => Err(refused("no process is to be started")),
            false => Ok((subjobs, counts)),
        }
    }

    /// Where a part is to run.
    fn place(&self, wishes: &Wishes<'_>) -> Result<&Subjob, Refusal> {
        let place = match (wishes.site, wishes.host) {
            (None, None) => Some(&self.places[self.own]),
            (Some(site), None) => self.places.iter().find(|p| p.is_at(site)),
            (site, Some(host)) => {
                let fits = |p: &&SpawnHost<'_>| site.is_none_or(|site| p.is_at(site));
                let own = std::iter::once(&self.places[self.own]);
                // This machine first: several parts of a job may be on one.
                own.chain(self.places).filter(fits).find(|p| p.is_called(host))
            }
        };
        let Some(place) = place else {
            let is_there = |site: &&str| self.places.iter().any(|p| p.is_at(site));
            let (host, site) = (wishes.host.unwrap_or_default(), wishes.site);
            if let Some(site) = site.filter(|site| !host.is_empty() && is_there(site)) {
                return Err(refused(format!(
                    "'{host}' (host) is not a machine of site '{site}' (isthmus_site): name one of both"
                )));
            }
            let wanted = site.unwrap_or(host);
            let known: Vec<String> = self.places.iter().map(|p| format!("'{}'", p.subjob.site)).collect();
            return Err(refused(format!(
                "'{wanted}' is not a machine of this job, whose sites are {}; ISTHMUS_SPAWN_SITES of its launcher names others \
                 where the program may start processes",
                known.join(", ")
            )));
        };
        let site = &place.subjob.site;
        if let Contact::Part(number) = place.subjob.contact {
            return Err(refused(format!(
                "site '{site}' is part {number} of a world that was put together by hand: only its own launcher starts processes there"
            )));
        }
        let own = place.subjob.allocation.as_ref().map(|a| a.scheduler.keyword());
        match wishes.scheduler {
            None | Some("fork") => {}
            Some(wanted) if own == Some(wanted) => {}
            Some(wanted) => {
                let known = own.map_or_else(
                    || "no scheduler that the job knows".to_owned(),
                    |own| format!("'{own}'"),
                );
                return Err(refused(format!(
                    "site '{site}' has {known}, and not '{wanted}' (isthmus_scheduler)"
                )));
            }
        }
        Ok(place.subjob)
    }

    fn subjob(&self, place: &Subjob, part: &SpawnProgram, wishes: &Wishes<'_>, appnum: u32, count: u32) -> Subjob {
        let mut environment = place.environment.clone();
        environment.extend(wishes.environment.iter().cloned());
        if let Some(path) = wishes.path {
            // The program is looked for there first.
            let rest = environment
                .iter()
                .rev()
                .find(|(name, _)| name == "PATH")
                .map(|(_, path)| path.clone());
            let rest = rest.or_else(|| std::env::var("PATH").ok()).unwrap_or_default();
            environment.push(("PATH".to_owned(), format!("{path}:{rest}")));
        }
        let (name, stage) = self.staged(place, part, wishes);
        let program = match wishes.architecture {
            None => Program::one(name),
            Some(architecture) => Program {
                any: None,
                by_architecture: [(architecture.to_owned(), name)].into(),
            },
        };
        Subjob {
            site: format!("{}+{}{}", place.site, self.number + 1, suffix(appnum)),
            count,
            sections: vec![Section {
                appnum,
                ..Section::only(program, part.arguments.clone())
            }],
            environment,
            directory: wishes.directory.map(str::to_owned).or_else(|| place.directory.clone()),
            // A job of its own for the scheduler, which knows nothing of its parents' nodes.
            forks: place.allocation.is_none() || wishes.scheduler == Some("fork"),
            allocation: place.allocation.clone().filter(|_| wishes.scheduler != Some("fork")),
            requests: Vec::new(),
            files: Default::default(),
            stage,
            ..place.clone()
        }
    }

    /// What the program is called, and whether it comes from the launcher. A process may spawn what it has just made,
    /// which nobody else has; and of the directories that are looked at first only a site itself knows its own.
    fn staged(&self, place: &Subjob, part: &SpawnProgram, wishes: &Wishes<'_>) -> (String, bool) {
        let named = part.program.clone();
        match wishes.path {
            Some(path) if place.stage && place.contact != Contact::Home && !named.contains('/') => {
                match staging::find_in(&words::os(path), &named, self.directory) {
                    Some(file) => (words::text(file), true),
                    None => (named, false),
                }
            }
            _ => {
                let stage = place.stage && staging::is_at_home(&named, self.directory);
                (named, stage)
            }
        }
    }
}

/// Parts after the first one have names of their own.
fn suffix(appnum: u32) -> String {
    match appnum {
        0 => String::new(),
        other => format!(".{other}"),
    }
}

impl SpawnHost<'_> {
    fn is_at(&self, site: &str) -> bool {
        self.subjob.site == site || self.subjob.lan == site
    }

    fn is_called(&self, host: &str) -> bool {
        let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
        let contact = self.subjob.contact.to_string();
        let destination = contact.rsplit('@').next().unwrap_or_default();
        host == self.subjob.site
            || host == contact
            || host == destination
            || host == self.host
            || (!host.contains('.') && host == short(self.host))
            || (host == "localhost" && contact == "home")
    }
}

/// What the keys of a part say. Others have no meaning here.
#[derive(Default)]
struct Wishes<'a> {
    site: Option<&'a str>,
    host: Option<&'a str>,
    scheduler: Option<&'a str>,
    directory: Option<&'a str>,
    path: Option<&'a str>,
    architecture: Option<&'a str>,
    soft: Option<&'a str>,
    on_loss: Option<&'a str>,
    handler: Option<&'a str>,
    environment: Vec<(String, String)>,
}

impl<'a> Wishes<'a> {
    fn of(part: &'a SpawnProgram) -> Result<Self, Refusal> {
        let mut wishes = Self::default();
        for (key, value) in &part.keys {
            let value = value.trim();
            let slot = match key.as_str() {
                "isthmus_site" => &mut wishes.site,
                "host" => &mut wishes.host,
                "isthmus_scheduler" => &mut wishes.scheduler,
                "wdir" => &mut wishes.directory,
                "path" => &mut wishes.path,
                "arch" => &mut wishes.architecture,
                "soft" => &mut wishes.soft,
                "isthmus_on_loss" => &mut wishes.on_loss,
                "mpi_initial_errhandler" => &mut wishes.handler,
                "env" => {
                    for line in value.lines().filter(|line| !line.trim().is_empty()) {
                        wishes.environment.push(variable(line)?);
                    }
                    continue;
                }
                _ => continue,
            };
            *slot = Some(value).filter(|value| !value.is_empty());
        }
        Ok(wishes)
    }

    /// What happens when one of its processes is lost: what its keys say, or else what holds at the place.
    fn on_loss(&self, place: &Subjob) -> Result<Option<OnLoss>, Refusal> {
        let said = self.on_loss.map(OnLoss::parse).transpose();
        let said = said.map_err(|error| refused(format!("isthmus_on_loss: {error}")))?;
        Ok(said.or_else(|| Terms::of(place).ok().and_then(|terms| terms.on_loss)))
    }

    /// The error handler that its processes begin with. That of their parents does not count (MPI 5.0 section 11.8.4).
    fn handler(&self) -> Result<(String, String), Refusal> {
        let handler = self.handler.unwrap_or(FATAL);
        initial_errhandler(handler).map_err(|error| refused(format!("mpi_initial_errhandler: {error}")))
    }

    /// How many processes a part gets: the most that are allowed and possible.
    fn count(&self, part: &SpawnProgram) -> Result<u32, Refusal> {
        let most = part.processes.min(MAX_NODE_PROCESSES);
        let Some(soft) = self.soft else {
            return match most == part.processes {
                true => Ok(most),
                false => Err(refused(format!(
                    "{} of '{}' are more than the {MAX_NODE_PROCESSES} that a node can have",
                    counted(part.processes, "process"),
                    part.program
                ))),
            };
        };
        let wrong = || {
            refused(format!(
                "soft = '{soft}' is not a list of numbers and triples FIRST:LAST:STEP"
            ))
        };
        let mut best = None;
        for item in soft.split(',') {
            best = best.max(largest(item.trim(), most).ok_or_else(wrong)?);
        }
        best.ok_or_else(|| {
            refused(format!(
                "soft = '{soft}' allows no number of processes up to {most}, which is the most of '{}' here",
                part.program
            ))
        })
    }
}

/// The largest number up to `most` of a triple `first:last:step`, if it has one; nothing: it is no triple.
fn largest(triple: &str, most: u32) -> Option<Option<u32>> {
    let numbers: Vec<i64> = triple
        .split(':')
        .map(|n| n.trim().parse().ok())
        .collect::<Option<_>>()?;
    let (first, last, step) = match numbers[..] {
        [one] => (one, one, 1),
        [first, last] => (first, last, 1),
        [first, last, step] if step != 0 => (first, last, step),
        _ => return None,
    };
    // From the largest one down: of what counts upwards the last that is reached.
    let size = step.unsigned_abs().min(i64::MAX as u64) as i64;
    let (low, high) = match step > 0 {
        true => (first, last),
        false => (last, first),
    };
    let limit = high.min(i64::from(most));
    if low > high || limit < low.min(limit.max(0)) {
        return Some(None);
    }
    // Members of the set differ from `first` by multiples of the step.
    let offset = (limit - first).rem_euclid(size);
    let best = limit - offset;
    let inside = best >= low.max(0) && best <= high;
    Some(inside.then_some(best).and_then(|best| u32::try_from(best).ok()))
}

fn refused(why: impl Into<String>) -> Refusal {
    Refusal::new(Kind::NotStarted, why)
}

/// A line NAME=VALUE of the key `env`.
fn variable(line: &str) -> Result<(String, String), Refusal> {
    let pair = line.split_once('=').map(|(name, value)| (name.trim(), value));
    match pair.filter(|(name, _)| !name.is_empty()) {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err(refused(format!(
            "env: the line '{}' is not of the form NAME=VALUE",
            line.trim()
        ))),
    }
}

#[cfg(test)]
mod tests;
