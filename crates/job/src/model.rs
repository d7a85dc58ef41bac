// SPDX-License-Identifier: Apache-2.0
//! What a job is.

pub use crate::contact::Contact;
use crate::contact::check_destination;
use crate::error::JobError;
use crate::links::Pins;
use crate::naming::{JobName, check_name};
pub use crate::program::{Program, Section};
pub use crate::subjob::{MAX_PROCESSES_PER_MACHINE, Subjob};
use crate::terms::{OnLoss, Terms};
use crate::transfer::{MAX_SHARED, MAX_TRANSFERS};
use std::collections::BTreeSet;
use std::fmt::Display;

/// The variable with the number of processors of each process.
const BIND_EACH: [&str; 2] = [isthmus_settings::BIND_EACH.name, isthmus_settings::MAP_EACH.name];

/// Most processes of one job.
pub const MAX_PROCESSES: u32 = 65_536;
/// Most subjobs of one job.
pub const MAX_SUBJOBS: usize = 1_024;
/// Most bytes of all arguments and variables of a subjob.
pub const MAX_ARGUMENT_BYTES: usize = 1 << 20;

/// What the user asked for. Valid by construction: see [`Job::new`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    subjobs: Vec<Subjob>,
    links: Pins,
    name: Option<JobName>,
}

impl Job {
    /// A job of these subjobs, or what is wrong with them.
    pub fn new(mut subjobs: Vec<Subjob>) -> Result<Self, JobError> {
        if subjobs.is_empty() {
            return Err(JobError::new("the job has no subjob").hint("add -n N, --site NAME:N or a [[subjob]]"));
        }
        if subjobs.len() > MAX_SUBJOBS {
            return Err(JobError::new(format!(
                "{} subjobs are above the limit of {MAX_SUBJOBS}",
                subjobs.len()
            )));
        }
        for subjob in &mut subjobs {
            subjob.settle();
            subjob.check()?;
        }
        check_names(&subjobs)?;
        check_total(&subjobs)?;
        Ok(Self {
            subjobs,
            links: Pins::default(),
            name: None,
        })
    }

    /// The same job with other subjobs: its name and what is said of its links stay.
    ///
    /// # Errors
    /// What is wrong with the subjobs.
    pub fn with_subjobs(&self, subjobs: Vec<Subjob>) -> Result<Self, JobError> {
        Ok(Self {
            links: self.links.clone(),
            name: self.name.clone(),
            ..Self::new(subjobs)?
        })
    }

    /// The same with a subjob for each program, none of which shares memory with others.
    #[must_use]
    pub(crate) fn apart(&self) -> Self {
        let mut taken: BTreeSet<String> = self.subjobs.iter().map(|s| s.site.clone()).collect();
        let mut subjobs = Vec::new();
        for subjob in &self.subjobs {
            for (number, mut one) in subjob.apart().into_iter().enumerate() {
                // The first one keeps the name.
                while number > 0 && !taken.insert(one.site.clone()) {
                    one.site.push('+');
                }
                subjobs.push(one);
            }
        }
        Self {
            subjobs,
            ..self.clone()
        }
    }

    /// The same with what happens when a process is lost, of all subjobs or those that do not say it themselves.
    #[must_use]
    pub fn losing(mut self, on_loss: OnLoss, of_all: bool) -> Self {
        let silent = |subjob: &Subjob| Terms::of(subjob).is_ok_and(|terms| terms.on_loss.is_none());
        let subjobs = self.subjobs.iter_mut().filter(|s| of_all || silent(s));
        subjobs.for_each(|subjob| on_loss.set(subjob));
        self
    }

    /// The same under this name, if it is one.
    #[must_use]
    pub fn called(self, name: Option<JobName>) -> Self {
        Self {
            name: name.or(self.name),
            ..self
        }
    }

    /// The name that its owner gave it.
    pub fn name(&self) -> Option<&JobName> {
        self.name.as_ref()
    }

    /// What is said of its links, above what has been said before.
    #[must_use]
    pub fn with_links(self, links: Pins) -> Self {
        Self {
            links: links.over(self.links),
            ..self
        }
    }

    /// The same with subjobs at hosts that are this machine at home. Who names a user or a port means ssh.
    #[must_use]
    pub fn at_home(mut self, is_own: fn(&str) -> bool) -> Self {
        for subjob in &mut self.subjobs {
            let Contact::Ssh(host) = &subjob.contact else { continue };
            if host.contains('@') || host.contains("://") || !is_own(host) {
                continue;
            }
            if subjob.lan == *host || subjob.lan == subjob.contact.to_string() {
                Contact::Home.to_string().clone_into(&mut subjob.lan);
            }
            subjob.contact = Contact::Home;
        }
        self
    }

    /// What is said of its links; names are those of local areas, or of sites.
    pub fn links(&self) -> &Pins {
        &self.links
    }

    /// The local areas in the order of their numbers: names, and the subjobs in them.
    pub fn local_areas(&self) -> Vec<(&str, Vec<usize>)> {
        let mut areas: Vec<(&str, Vec<usize>)> = Vec::new();
        for (number, subjob) in self.subjobs.iter().enumerate() {
            match areas.iter_mut().find(|(name, _)| *name == subjob.lan) {
                Some((_, subjobs)) => subjobs.push(number),
                None => areas.push((&subjob.lan, vec![number])),
            }
        }
        areas
    }

    /// The subjobs, in the order of their ranks.
    pub fn subjobs(&self) -> &[Subjob] {
        &self.subjobs
    }

    /// What is asked for and has no effect, as far as that is worth telling: site, relation, why.
    pub fn unheeded(&self) -> Vec<(&str, String, &'static str)> {
        let requests = self.subjobs.iter().flat_map(|s| s.requests.iter().map(move |r| (s, r)));
        let requests = requests.filter_map(|(s, r)| Some((s.site.as_str(), r.text(), r.unheeded()?)));
        let asks =
            |s: &&Subjob| s.vendor().is_some() && s.environment.iter().any(|(name, _)| BIND_EACH.contains(&&**name));
        let bound = self.subjobs.iter().filter(asks).map(|s| {
            let why = "the machine's own MPI binds its processes by itself";
            (s.site.as_str(), "pe=N, or ppr:N:PART".to_owned(), why)
        });
        requests.chain(bound).collect()
    }

    /// Number of processes.
    pub fn processes(&self) -> u32 {
        self.subjobs.iter().map(|s| s.count).sum()
    }

    /// Whether its machines are on more than one local network, so that certificates are needed.
    pub fn spans_wide_area(&self) -> bool {
        self.subjobs.iter().any(|s| s.lan != self.subjobs[0].lan)
    }

    /// Whether processes are, or may be, on more than one node, but for a job of one subjob whose nodes the machine's
    /// own MPI joins.
    pub fn spans_nodes(&self) -> bool {
        let nodes = |s: &Subjob| s.allocation.as_ref().is_some_and(|a| a.nodes != 1 && s.count > 1);
        let several = |s: &Subjob| nodes(s) && s.vendor().is_none();
        self.subjobs.len() > 1 || self.subjobs.iter().any(several)
    }

    /// First rank of each subjob.
    pub fn first_ranks(&self) -> Vec<u32> {
        let mut next = 0;
        let mut first = Vec::with_capacity(self.subjobs.len());
        for subjob in &self.subjobs {
            first.push(next);
            next += subjob.count;
        }
        first
    }
}

impl Subjob {
    fn check(&self) -> Result<(), JobError> {
        if self.request("jobType") == Some("single") && self.count > 1 {
            let problem = format!(
                "site '{}': jobType=single starts one process, count is {}",
                self.site, self.count
            );
            return Err(JobError::new(problem).hint("ask for jobType=multiple or one process"));
        }
        check_name("site", &self.site)?;
        Terms::of(self)?;
        check_name("lan", &self.lan)?;
        if let Contact::Ssh(destination) = &self.contact {
            check_destination(destination)?;
        }
        check_count(&self.site, self.count)?;
        if self.files.inputs.len().max(self.files.outputs.len()) > MAX_TRANSFERS {
            let problem = format!("site '{}' has more than {MAX_TRANSFERS} inputs or outputs", self.site);
            return Err(JobError::new(problem).hint("name the directory that they are in"));
        }
        if self.files.shared.len() > MAX_SHARED {
            let problem = format!("site '{}' shares more than {MAX_SHARED} directories", self.site);
            return Err(JobError::new(problem).hint("name the directory that they are in"));
        }
        self.check_sections()?;
        if let Some(allocation) = &self.allocation {
            crate::allocation::check(&self.site, self.count, allocation)?;
        }
        self.check_texts()
    }

    fn check_texts(&self) -> Result<(), JobError> {
        let sections = &self.sections;
        let arguments = sections.iter().flat_map(|s| &s.arguments).map(|a| ("argument", a));
        let environment = || {
            let own = sections.iter().flat_map(|section| &section.environment);
            self.environment.iter().chain(own)
        };
        let variables = environment().flat_map(|(n, v)| [("variable name", n), ("variable", v)]);
        let programs = self.programs().map(|p| ("program", p));
        let directories = sections.iter().filter_map(|section| section.directory.as_ref());
        let directory = self.directory.iter().chain(directories).map(|d| ("directory", d));
        let directory = directory.chain(self.setup.iter().map(|s| ("set-up command", s)));
        let mut bytes = 0;
        for (what, text) in arguments.chain(variables).chain(programs).chain(directory) {
            if text.contains('\0') {
                return Err(JobError::new(format!("{what} {text:?} contains a zero byte")));
            }
            bytes += text.len() + 1;
        }
        if bytes > MAX_ARGUMENT_BYTES {
            let problem =
                format!("arguments and environment take {bytes} bytes, above the limit of {MAX_ARGUMENT_BYTES}");
            return Err(JobError::new(problem).hint("put the data into a file"));
        }
        if let Some((name, _)) = environment().find(|(name, _)| name.is_empty() || name.contains('=')) {
            return Err(JobError::new(format!(
                "'{name}' is not the name of an environment variable"
            )));
        }
        Ok(())
    }
}

/// Whether a job that has these subjobs goes on when a process of one of them is lost.
pub fn goes_on<'s>(subjobs: impl IntoIterator<Item = &'s Subjob>) -> bool {
    let mut subjobs = subjobs.into_iter();
    subjobs.any(|subjob| Terms::of(subjob).is_ok_and(|terms| terms.goes_on()))
}

/// Says what is wrong with a number of processes for one machine.
pub fn check_count(site: &str, count: u32) -> Result<(), JobError> {
    if count == 0 {
        return Err(JobError::new(format!("site '{site}' is asked for 0 processes")).hint("ask for at least 1"));
    }
    if count > MAX_PROCESSES {
        return Err(too_many(count));
    }
    if count > MAX_PROCESSES_PER_MACHINE {
        let problem = format!(
            "{count} processes on site '{site}' are above the limit of {MAX_PROCESSES_PER_MACHINE} per machine"
        );
        return Err(JobError::new(problem).hint("spread them over more sites with --site NAME:N"));
    }
    Ok(())
}

/// A number of processes that may be larger than any job's, which is refused in the user's own digits.
pub(crate) fn to_count(number: i64) -> Result<u32, JobError> {
    u32::try_from(number).map_err(|_| too_many(number))
}

pub(crate) fn too_many(count: impl Display) -> JobError {
    JobError::new(format!(
        "{count} processes are above the limit of {MAX_PROCESSES} per job"
    ))
    .hint(format!(
        "ask for at most {MAX_PROCESSES} in all and {MAX_PROCESSES_PER_MACHINE} per machine"
    ))
}

fn check_names(subjobs: &[Subjob]) -> Result<(), JobError> {
    let mut seen = BTreeSet::new();
    for subjob in subjobs {
        if !seen.insert(&subjob.site) {
            let hint = format!("give one of them a name of its own: --site second={}:N", subjob.contact);
            return Err(JobError::new(format!("site '{}' is named twice", subjob.site)).hint(hint));
        }
    }
    Ok(())
}

fn check_total(subjobs: &[Subjob]) -> Result<(), JobError> {
    let total: u64 = subjobs.iter().map(|s| u64::from(s.count)).sum();
    if total > u64::from(MAX_PROCESSES) {
        return Err(too_many(total));
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::transfer::Transfers;

    pub(crate) fn subjob(site: &str, count: u32) -> Subjob {
        Subjob {
            site: site.into(),
            contact: Contact::Home,
            count,
            lan: site.into(),
            sections: vec![Section::only(Program::one("./a"), vec![])],
            environment: vec![],
            directory: None,
            allocation: None,
            forks: false,
            stage: true,
            requests: vec![],
            setup: vec![],
            files: Transfers::default(),
        }
    }

    fn refusal(subjobs: Vec<Subjob>) -> String {
        Job::new(subjobs).unwrap_err().to_string()
    }

    #[test]
    fn counts_outside_the_limits_are_refused_with_the_limit() {
        assert!(refusal(vec![subjob("home", 0)]).contains("asked for 0 processes"));
        assert!(refusal(vec![subjob("home", 100_000)]).contains("limit of 65536 per job"));
        assert!(refusal(vec![subjob("home", 5000)]).contains("limit of 4096 per machine"));
        let many = (0..20).map(|i| subjob(&format!("s{i}"), 4096)).collect();
        assert!(refusal(many).contains("81920 processes are above the limit"));
    }

    #[test]
    fn names_are_checked() {
        assert!(refusal(vec![subjob("a", 1), subjob("a", 1)]).contains("named twice"));
        assert!(refusal(vec![subjob("a b", 1)]).contains("white space"));
        assert!(Contact::parse("-oProxyCommand=x").is_err());
        for nobody in [":2", "me@", "me@:22"] {
            assert!(
                Contact::parse(nobody)
                    .unwrap_err()
                    .to_string()
                    .contains("names no host"),
                "{nobody}"
            );
        }
        assert_eq!(Contact::parse("::1"), Ok(Contact::Ssh("::1".into())));
        assert_eq!(Contact::parse("me@lab"), Ok(Contact::Ssh("me@lab".into())));
    }

    #[test]
    fn the_last_variable_of_a_name_counts() {
        let mut one = subjob("a", 1);
        let pair = |n: &str, v: &str| (n.to_owned(), v.to_owned());
        one.environment = vec![pair("A", "1"), pair("B", "2"), pair("A", "3")];
        let job = Job::new(vec![one]).unwrap();
        assert_eq!(job.subjobs()[0].environment, [pair("B", "2"), pair("A", "3")]);
    }

    #[test]
    fn ranks_follow_the_order_of_subjobs() {
        let job = Job::new(vec![subjob("a", 3), subjob("b", 2)]).unwrap();
        assert_eq!(
            (job.first_ranks(), job.processes(), job.spans_wide_area()),
            (vec![0, 3], 5, true)
        );
    }
}
