// SPDX-License-Identifier: Apache-2.0
//! The standard command line: `mpiexec [options] program arguments [: [options] program arguments]...`
//!
//! Long options may begin with one hyphen or two, as MPICH and Open MPI write them.

use crate::error::{JobError, JobErrors};
use crate::forms::hostfile::{self, Host};
use crate::forms::rsl;
use crate::forms::sites;
use crate::forms::{Described, Form, Input};
use crate::model::{Contact, Job, Program, Subjob};
use crate::placement::{self, Placement, Said};
use crate::sections::joined;
use crate::transfer::parse_shared;
use isthmus_topology::processors::HardwareType;
use options::{OTHERS, assignment, attached, before, instead, no_rankfile, option, takes_value, unknown};
pub use options::{initial_errhandler, option_names, option_with_value};
pub(crate) use pool::{Pool, spread};

mod configuration;
mod options;
mod pool;
pub mod spellings;

/// What the words ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// To run a job.
    Run {
        /// The job.
        described: Described,
        /// Whether lines of output begin with their rank.
        label: bool,
        /// Whether the job is printed as RSL and not run.
        dump: bool,
        /// What concerns the launcher.
        launcher: Box<Launcher>,
    },
    /// The help text.
    Help,
    /// The version.
    Version,
}

/// What concerns the launcher and not the job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launcher {
    /// Longest time of the job, as the user wrote it.
    pub limit: Option<String>,
    /// Who gets the standard input, as `isthmus run --stdin` takes it.
    pub stdin: Option<String>,
    /// Pattern of the files that get the output, as `isthmus run --outfile-pattern` takes it.
    pub outfile_pattern: Option<String>,
    /// Directory of files for the output of each process.
    pub output_dir: Option<String>,
}

/// What the command line refers to but does not contain.
pub trait Outside {
    /// The content of a host file.
    fn read(&mut self, path: &str) -> Result<String, String>;
    /// The value of one of the user's variables.
    fn variable(&mut self, name: &str) -> Option<String>;
    /// Whether this name or address is that of the machine that we are on.
    fn is_own(&mut self, host: &str) -> bool;
    /// How many of these parts the machine that we are on has.
    fn parts(&mut self, part: HardwareType) -> usize;
    /// The nodes of the allocation that we are in, and their local network.
    fn allocated(&mut self) -> Result<Option<(Vec<Host>, String)>, JobErrors>;
}

/// Help text.
pub const HELP: &str = "\
Run programs as one MPI job

usage: mpiexec [OPTIONS] PROGRAM [ARGUMENT]... [: [OPTIONS] PROGRAM [ARGUMENT]...]...

  -n, -np N               number of processes [default: 1, or the slots of the hosts]
  -host, -hosts LIST      hosts (ssh destinations, or `home`): A:2,B
  -f, -hostfile FILE      hosts from a file, NAME:N or NAME slots=N per line; or a PACX-MPI or MPICH-G2 machines file
  -ppn, -npernode, -N N   processes on each host that has no number; without hosts, on this machine
  -bind-to PART           bind each process to a part of its machine: none, hwthread, core, l3cache, numa, socket;
                          core:N: to N of them
  -map-by PART            place processes on the parts of their machine in turn: hwthread, core, l3cache, numa,
                          socket; ppr:N:PART: N on each part; ppr:N:node: N on each host; node: evenly over the hosts;
                          with :pe=N, N cores for each process
  -report-bindings        print which processors each process may use
  -lan NAME               all hosts share one local network (traffic between them is not encrypted)
  -wdir, -wd DIRECTORY    working directory
  -env, -genv NAME VALUE  variable for one program, for all
  -x NAME[=VALUE]         variable for one program; without a value, that of your shell
  -envlist, -genvlist A,B variables of your shell for one program, for all
  -timeout TIME           end the job after this time (seconds, or 10m, 1h)
  -stdin RANK             which rank gets the standard input [default: 0]; also all or none
  -outfile-pattern NAME   a file for each process: %r is its rank, %s the site, %t out or err
  -configfile FILE        read options and programs from a file, one program per line; a backslash continues a line
  -separate               programs on one host are subjobs of their own, which share no memory
  -share DIRECTORY        processes of other sites may open files in this directory of each site
  -initial-errhandler E   mpi_errors_are_fatal, mpi_errors_abort or mpi_errors_return
  -l, -label              begin each line of output with its rank
  -dumprsl                print the job as RSL and do not run it
  -globusrsl FILE         run the job that is described in RSL
  -version, -help

`isthmus run` can do more: sites, schedulers, job files, background jobs.";

/// Reads the words after the command's name.
pub fn parse(words: &[String], outside: &mut dyn Outside) -> Result<Request, JobErrors> {
    let mut general = General {
        bindings: rsl::bindings(|name| outside.variable(name)),
        ..General::default()
    };
    let mut sections = Vec::new();
    let read = match configured(words, outside)? {
        Some(programs) => programs,
        None => words.split(|w| w == ":").map(<[String]>::to_vec).collect(),
    };
    for words in &read {
        match Section::parse(words, &mut general, outside)? {
            Parsed::Section(section) => sections.push(section),
            Parsed::Other(request) => return Ok(request),
        }
    }
    general.place()?;
    let mut described = match general.request.take() {
        Some(file) => general.described(&file, &sections)?,
        None => {
            general.use_allocation(&sections, outside)?;
            general.count_parts(&mut sections, outside)?;
            general.job(sections)?
        }
    };
    if let Some(file) = &general.machines {
        let note = file.form.note_of_home(&described.job, &mut |host| outside.is_own(host));
        described.notes.extend(note);
    }
    described.notes.extend(general.notes);
    Ok(Request::Run {
        described,
        label: general.label,
        dump: general.dump,
        launcher: Box::new(general.launcher),
    })
}

/// The words of `-configfile FILE` (MPI 5.0 section 11.5), program by program.
fn configured(words: &[String], outside: &mut dyn Outside) -> Result<Option<Vec<Vec<String>>>, JobErrors> {
    let [option, name, rest @ ..] = words else {
        return Ok(None);
    };
    if options::option(option) != Some("configfile") {
        return Ok(None);
    }
    if let Some(word) = rest.first() {
        return Err(JobError::new(format!("'{word}' follows {option} {name}"))
            .hint("the file says everything")
            .into());
    }
    let text = outside
        .read(name)
        .map_err(|why| JobError::new(format!("cannot read configuration file '{name}': {why}")))?;
    let programs = configuration::programs(&text).map_err(|why| {
        JobError::new(format!("configuration file '{name}': {why}")).hint("close it with another one")
    })?;
    match programs.is_empty() {
        true => Err(JobError::new(format!("configuration file '{name}' names no program"))
            .hint("write a line for each: -n N PROGRAM")
            .into()),
        false => Ok(Some(programs)),
    }
}

/// What holds for all programs.
#[derive(Default)]
struct General {
    hosts: Vec<Host>,
    environment: Vec<(String, String)>,
    per_host: Option<u32>,
    said: Said,
    /// What is said of processors and hosts.
    placement: Placement,
    lan: Option<String>,
    label: bool,
    dump: bool,
    no_stage: bool,
    /// Whether programs on one host are subjobs of their own.
    separate: bool,
    /// Directories that processes of other sites reach.
    shared: Vec<String>,
    launcher: Launcher,
    /// What was said that has no effect here.
    notes: Vec<JobError>,
    /// Variables of RSL.
    bindings: Vec<(String, String)>,
    /// A description of machines that is no host file.
    machines: Option<File>,
    /// A description of the whole job.
    request: Option<File>,
}

/// A file that was read.
struct File {
    name: String,
    text: String,
    form: Form,
}

/// One program.
#[derive(Default)]
struct Section {
    count: Option<u32>,
    hosts: Vec<Host>,
    directory: Option<String>,
    environment: Vec<(String, String)>,
    program: String,
    arguments: Vec<String>,
}

enum Parsed {
    Section(Section),
    Other(Request),
}

impl Section {
    fn parse(words: &[String], general: &mut General, outside: &mut dyn Outside) -> Result<Parsed, JobErrors> {
        let mut section = Self::default();
        let mut words = words.iter().map(String::as_str);
        loop {
            let Some(word) = words.next() else {
                if general.request.is_some() {
                    break;
                }
                return Err(no_program());
            };
            // Behind `--` stands the program, whatever its name begins with, as in other launchers and `isthmus run`.
            if word == "--" {
                words.next().ok_or_else(no_program)?.clone_into(&mut section.program);
                break;
            }
            if !word.starts_with('-') || word == "-" {
                word.clone_into(&mut section.program);
                break;
            }
            // Open MPI and MPICH take values behind an equals sign too, as srun does, which also takes -n4.
            let (word, joined) = match word.split_once('=') {
                Some((name, value)) if option(name).is_some_and(takes_value) => (name, Some(value)),
                _ => attached(word).map_or((word, None), |(name, number)| (name, Some(number))),
            };
            let next = joined.or_else(|| words.clone().next());
            let mut words = joined.into_iter().chain(words.by_ref());
            match option(word) {
                Some("help") => return Ok(Parsed::Other(Request::Help)),
                Some("version") => return Ok(Parsed::Other(Request::Version)),
                Some(name) => section.take(before(name, next), word, &mut words, general, outside)?,
                None => return Err(unknown(word, "mpiexec -help").into()),
            }
        }
        section.arguments = words.map(str::to_owned).collect();
        Ok(Parsed::Section(section))
    }

    fn take<'a>(
        &mut self,
        name: &str,
        word: &str,
        words: &mut impl Iterator<Item = &'a str>,
        general: &mut General,
        outside: &mut dyn Outside,
    ) -> Result<(), JobErrors> {
        let mut value = |what: &str| {
            words
                .next()
                .ok_or_else(|| JobError::new(format!("{word} needs a {what}")).hint("see mpiexec -help"))
        };
        match name {
            "n" => self.count = Some(sites::parse_count(value("number")?)?),
            "host" => {
                let list = value("hosts")?;
                general.notes.extend(hostfile::ports_in(list));
                let hosts = hostfile::parse_list(list)?;
                self.hosts = hostfile::at_home(hosts, &mut |host| outside.is_own(host));
            }
            "hostfile" => {
                let file = File::read(value("file")?, "host file", outside)?;
                match file.form {
                    Form::Pacx | Form::Machines => general.machines = Some(file),
                    _ => {
                        let hosts = hostfile::parse(&file.text, &file.name)?;
                        general.hosts = hostfile::at_home(hosts, &mut |host| outside.is_own(host));
                    }
                }
            }
            "globusrsl" => {
                let file = File::read(value("file")?, "RSL file", outside)?;
                general.request = Some(File {
                    form: Form::Rsl,
                    ..file
                });
            }
            "dumprsl" => general.dump = true,
            "nostage" => general.no_stage = true,
            "separate" => general.separate = true,
            "share" => general.shared.push(parse_shared(value("directory")?)?),
            "wdir" => self.directory = Some(value("directory")?.to_owned()),
            "env" | "genv" => {
                let (variable, text) = assignment(&mut value)?;
                let variables = if name == "env" {
                    &mut self.environment
                } else {
                    &mut general.environment
                };
                variables.push((variable.to_owned(), text.to_owned()));
            }
            "x" => self.environment.push(exported(value("variable")?, outside)?),
            "envlist" | "genvlist" => {
                let own = name == "envlist";
                let variables = if own {
                    &mut self.environment
                } else {
                    &mut general.environment
                };
                for name in value("variables")?.split(',') {
                    variables.push(exported(name, outside)?);
                }
            }
            "ppn" => general.per_host = Some(sites::parse_each(value("number")?)?),
            "pernode" => general.per_host = Some(1),
            "rankfile" => return Err(no_rankfile(word).into()),
            "lan" => general.lan = Some(value("name")?.to_owned()),
            "label" => general.label = true,
            other if general.said_of_processors(other, word, &mut value)? => {}
            other => general.launcher(other, word, &mut value)?,
        }
        Ok(())
    }
}

fn no_program() -> JobErrors {
    let error = JobError::new("no program is named");
    error.hint("write mpiexec -n N PROGRAM").into()
}

impl File {
    fn read(name: &str, what: &str, outside: &mut dyn Outside) -> Result<Self, JobError> {
        let text = outside
            .read(name)
            .map_err(|why| JobError::new(format!("cannot read {what} '{name}': {why}")))?;
        Ok(Self {
            form: Form::detect(name, &text),
            name: name.to_owned(),
            text,
        })
    }
}

fn exported(text: &str, outside: &mut dyn Outside) -> Result<(String, String), JobError> {
    if let Some((name, value)) = text.split_once('=') {
        return Ok((name.to_owned(), value.to_owned()));
    }
    match outside.variable(text) {
        Some(value) => Ok((text.to_owned(), value)),
        None => Err(JobError::new(format!("variable '{text}' is not set here")).hint("write -x NAME=VALUE")),
    }
}

impl General {
    /// Options about processors; whether this is one.
    fn said_of_processors<'a>(
        &mut self,
        name: &str,
        word: &str,
        value: &mut impl FnMut(&str) -> Result<&'a str, JobError>,
    ) -> Result<bool, JobError> {
        let said = &mut self.said;
        match name {
            "bind-to" => said.bind_to = Some(value("part")?.to_owned()),
            "map-by" => said.map_by = Some(value("part")?.to_owned()),
            "rank-by" => said.rank_by = Some(value("part")?.to_owned()),
            "bind-each" => said.bind_each = Some(value("number")?.to_owned()),
            "map-each" => said.map_each = Some(value("number")?.to_owned()),
            "npersocket" => said.map_by = Some(format!("ppr:{}:socket", value("number")?)),
            "old-bind-to" => said.bind_to = Some(options::old_word(word).to_owned()),
            "old-map-by" => said.map_by = Some(options::old_word(word).to_owned()),
            "report-bindings" => said.report = true,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What is said of processors becomes variables; what it says of hosts is kept.
    fn place(&mut self) -> Result<(), JobError> {
        self.placement = self.said.placement()?;
        self.per_host = self.placement.per_host.or(self.per_host);
        self.environment.append(&mut self.placement.variables);
        self.notes.append(&mut self.placement.notes);
        Ok(())
    }

    /// `ppr:N:PART` without a number of processes: how many parts there are is known of this machine only.
    fn count_parts(&self, sections: &mut [Section], outside: &mut dyn Outside) -> Result<(), JobError> {
        let Some((each, part)) = self.placement.per_part else {
            return Ok(());
        };
        for section in sections.iter_mut().filter(|section| section.count.is_none()) {
            let hosts = if section.hosts.is_empty() {
                &self.hosts
            } else {
                &section.hosts
            };
            if hosts.iter().any(|host| host.contact != Contact::Home) {
                return Err(placement::unknown_parts(each, part));
            }
            let parts = u32::try_from(outside.parts(part)).unwrap_or(u32::MAX).max(1);
            section.count = Some(each.saturating_mul(parts));
        }
        Ok(())
    }

    /// The hosts for so many processes.
    fn pool(&self, hosts: &[Host], count: Option<u32>) -> Pool {
        let mut hosts = hosts.to_vec();
        match count {
            Some(count) if self.placement.evenly => spread(&mut hosts, count),
            _ if self.placement.per_host.is_some() => hosts.iter_mut().for_each(|host| host.slots = None),
            _ => {}
        }
        Pool::new(hosts, self.per_host)
    }

    /// Options that concern the launcher, and those that have no effect here.
    fn launcher<'a>(
        &mut self,
        name: &str,
        word: &str,
        value: &mut impl FnMut(&str) -> Result<&'a str, JobError>,
    ) -> Result<(), JobError> {
        match name {
            "timeout" => {
                let time = value("time")?;
                let seconds = time.bytes().all(|b| b.is_ascii_digit());
                self.launcher.limit = Some(if seconds { format!("{time}s") } else { time.to_owned() });
            }
            "stdin" => self.launcher.stdin = Some(value("rank")?.to_owned()),
            "outfile-pattern" => self.launcher.outfile_pattern = Some(value("pattern")?.to_owned()),
            "output-dir" => self.launcher.output_dir = Some(value("directory")?.to_owned()),
            // The standard's: which files and machines; a job of fixed size on machines that are named has no choice.
            "soft" | "arch" | "path" | "file" | "errfile-pattern" => {
                let given = value("value")?;
                let note = JobError::new(format!("{word} {given} has no effect"));
                self.notes.push(note.hint(instead(name)));
            }
            "initial-errhandler" => self.environment.push(initial_errhandler(value("name")?)?),
            "configfile" => {
                let file = value("file")?;
                let error = JobError::new(format!("{word} {file} must be the only option"));
                return Err(error.hint("the file says everything: mpiexec -configfile FILE"));
            }
            "ignored-value" => {
                let given = value("value")?;
                self.notes
                    .push(JobError::new(format!("{word} {given} has no effect")).hint(OTHERS));
            }
            "mca" => {
                let (name, given) = (value("name")?, value("value")?);
                self.notes
                    .push(JobError::new(format!("{word} {name} {given} has no effect")).hint(OTHERS));
            }
            "noted" => self
                .notes
                .push(JobError::new(format!("{word} has no effect")).hint(OTHERS)),
            "environment" => self
                .notes
                .push(JobError::new(format!("{word} has no effect")).hint(instead(name))),
            // "all variables": what is done anyway; "more processes than processors": never refused.
            _ => {}
        }
        Ok(())
    }

    /// The job of a file; what else was said about the processes has no effect and is told so.
    fn described(&self, file: &File, sections: &[Section]) -> Result<Described, JobErrors> {
        let given = sections.iter().any(|s| s.count.is_some() || !s.program.is_empty());
        let mut described = file.form.read(&Input {
            bindings: &self.bindings,
            ..Input::of(&file.text, &file.name)
        })?;
        if given {
            let note = JobError::new(format!("'{}' describes the whole job", file.name));
            described.notes.push(note.hint("-n and the program have no effect"));
        }
        Ok(described)
    }

    /// The one program on the machines of a file that is no host file.
    fn on_machines(&self, file: &File, sections: &[Section]) -> Result<Described, JobErrors> {
        let [section] = sections else {
            let error = JobError::new(format!("'{}' takes one program", file.name));
            return Err(error.hint("write several programs into a job file").into());
        };
        let template = self.template(section, 0);
        let input = Input {
            program: Some(&template),
            total: section.count,
            lan: self.lan.as_deref(),
            ..Input::of(&file.text, &file.name)
        };
        file.form.read(&input)
    }

    fn template(&self, section: &Section, appnum: u32) -> Subjob {
        let mut template = sites::template(Program::one(section.program.clone()), section.arguments.clone());
        template.directory.clone_from(&section.directory);
        template.environment = self.environment.iter().chain(&section.environment).cloned().collect();
        template.sections[0].appnum = appnum;
        template.stage = !self.no_stage;
        template.files.shared.clone_from(&self.shared);
        template
    }

    /// Inside an allocation its nodes are used, unless hosts are named.
    fn use_allocation(&mut self, sections: &[Section], outside: &mut dyn Outside) -> Result<(), JobErrors> {
        if self.machines.is_some() || !self.hosts.is_empty() || sections.iter().any(|s| !s.hosts.is_empty()) {
            return Ok(());
        }
        let Some((mut hosts, lan)) = outside.allocated()? else {
            return Ok(());
        };
        if self.per_host.is_some() {
            hosts.iter_mut().for_each(|host| host.slots = None);
        }
        // One machine alone needs no network.
        if hosts.iter().any(|host| host.contact != Contact::Home) {
            self.lan.get_or_insert(lan);
        }
        self.hosts = hosts;
        Ok(())
    }

    /// How many processes on this machine, where no host is named.
    fn alone(&self, count: Option<u32>) -> Result<Option<u32>, JobError> {
        match (count, self.per_host) {
            (Some(count), Some(each)) if count > each => {
                let problem = format!(
                    "{count} processes with {each} on each host need {} hosts",
                    count.div_ceil(each)
                );
                Err(JobError::new(problem).hint("name them with -host or -hostfile"))
            }
            (count, each) => Ok(count.or(each)),
        }
    }

    fn job(&self, sections: Vec<Section>) -> Result<Described, JobErrors> {
        if let Some(file) = &self.machines {
            return self.on_machines(file, &sections);
        }
        let total = sections
            .iter()
            .try_fold(0u32, |sum, section| Some(sum.saturating_add(section.count?)));
        let mut pool = self.pool(&self.hosts, total);
        let mut subjobs = Vec::new();
        for (appnum, section) in (0u32..).zip(sections) {
            let dealt = if section.hosts.is_empty() && self.hosts.is_empty() {
                pool.deal(self.alone(section.count)?)
            } else if section.hosts.is_empty() {
                pool.deal(section.count)
            } else {
                self.pool(&section.hosts, section.count).deal(section.count)
            };
            let template = self.template(&section, appnum);
            for (contact, count) in dealt {
                let lan = self.lan.clone().unwrap_or_else(|| contact.to_string());
                subjobs.push(Subjob {
                    site: contact.to_string(),
                    contact,
                    count,
                    lan,
                    ..template.clone()
                });
            }
        }
        // Programs that follow each other on one host are one subjob there, unless the user wants several.
        if !self.separate {
            subjobs = joined(subjobs);
        }
        sites::name_apart(&mut subjobs);
        Ok(Described::of(Job::new(subjobs)?))
    }
}

#[cfg(test)]
mod tests;
