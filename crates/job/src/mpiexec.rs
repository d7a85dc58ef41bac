// SPDX-License-Identifier: Apache-2.0
//! The standard command line: `mpiexec [options] program arguments [: [options] program arguments]...`
//!
//! Long options may begin with one hyphen or two, as MPICH and Open MPI write them.

use crate::error::{JobError, JobErrors, nearest};
use crate::form::{Described, Form, Input};
use crate::hostfile::{self, Host};
use crate::model::{Contact, Job, Program, Subjob};
use crate::network;
use crate::rsl;
use crate::sites;

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
    },
    /// The help text.
    Help,
    /// The version.
    Version,
}

/// What the command line refers to but does not contain.
pub trait Outside {
    /// The content of a host file.
    fn read(&mut self, path: &str) -> Result<String, String>;
    /// The value of one of the user's variables.
    fn variable(&mut self, name: &str) -> Option<String>;
}

/// Help text.
pub const HELP: &str = "\
Run programs as one MPI job

usage: mpiexec [OPTIONS] PROGRAM [ARGUMENT]... [: [OPTIONS] PROGRAM [ARGUMENT]...]...

  -n, -np N               number of processes [default: 1, or the slots of the hosts]
  -host, -hosts LIST      hosts (ssh destinations, or `home`): A:2,B
  -f, -hostfile FILE      hosts from a file: NAME:N or NAME slots=N a line; or a PACX-MPI or MPICH-G2 machines file
  -ppn N                  processes on each host whose number is not given
  -bind-to PART           bind each process to a part of its machine: none, hwthread, core, numa, socket
  -map-by PART            deal processes out to parts of their machine in turn: hwthread, core, numa, socket
  -report-bindings        every process says which processors it may use
  -lan NAME               all hosts share one local network (traffic between them is not encrypted)
  -wdir, -wd DIRECTORY    working directory
  -env, -genv NAME VALUE  variable for one program, for all
  -x NAME[=VALUE]         variable for all
  -l, -label              begin each line of output with its rank
  -dumprsl                print the job as RSL and do not run it
  -globusrsl FILE         run the job that is described in RSL
  -version, -help

`isthmus run` has more: sites, job files.";

/// Reads the words after the command's name.
pub fn parse(words: &[String], outside: &mut dyn Outside) -> Result<Request, JobErrors> {
    let mut general = General {
        bindings: rsl::bindings(|name| outside.variable(name)),
        ..General::default()
    };
    let mut sections = Vec::new();
    for words in words.split(|w| w == ":") {
        match Section::parse(words, &mut general, outside)? {
            Parsed::Section(section) => sections.push(section),
            Parsed::Other(request) => return Ok(request),
        }
    }
    let (to, by) = (general.bind_to.take(), general.map_by.take());
    network::check_binding(to.as_deref(), by.as_deref())?;
    for (name, value) in [("ISTHMUS_BIND_TO", to), ("ISTHMUS_MAP_BY", by)] {
        general.environment.extend(value.map(|value| (name.to_owned(), value)));
    }
    let described = match general.request.take() {
        Some(file) => general.described(&file, &sections)?,
        None => general.job(sections)?,
    };
    Ok(Request::Run {
        described,
        label: general.label,
        dump: general.dump,
    })
}

/// What holds for all programs.
#[derive(Default)]
struct General {
    hosts: Vec<Host>,
    environment: Vec<(String, String)>,
    per_host: Option<u32>,
    bind_to: Option<String>,
    map_by: Option<String>,
    lan: Option<String>,
    label: bool,
    dump: bool,
    no_stage: bool,
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
                let error = JobError::new("no program is named");
                return Err(error.hint("write mpiexec -n N PROGRAM").into());
            };
            if !word.starts_with('-') || word == "-" {
                word.clone_into(&mut section.program);
                break;
            }
            match option(word) {
                Some("help") => return Ok(Parsed::Other(Request::Help)),
                Some("version") => return Ok(Parsed::Other(Request::Version)),
                Some(name) => section.take(name, word, &mut words, general, outside)?,
                None => return Err(unknown(word).into()),
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
                .ok_or_else(|| JobError::new(format!("{word} lacks its {what}")).hint("see mpiexec -help"))
        };
        match name {
            "n" => self.count = Some(sites::parse_count(value("number")?)?),
            "host" => self.hosts = hostfile::parse_list(value("hosts")?)?,
            "hostfile" => {
                let file = File::read(value("file")?, "host file", outside)?;
                match file.form {
                    Form::Pacx | Form::Machines => general.machines = Some(file),
                    _ => general.hosts = hostfile::parse(&file.text, &file.name)?,
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
            "wdir" => self.directory = Some(value("directory")?.to_owned()),
            "env" => self
                .environment
                .push((value("name")?.to_owned(), value("value")?.to_owned())),
            "genv" => general
                .environment
                .push((value("name")?.to_owned(), value("value")?.to_owned())),
            "x" => general.environment.push(exported(value("variable")?, outside)?),
            "ppn" => general.per_host = Some(sites::parse_count(value("number")?)?),
            "bind-to" => general.bind_to = Some(value("part")?.to_owned()),
            "map-by" => general.map_by = Some(value("part")?.to_owned()),
            "report-bindings" => general
                .environment
                .push(("ISTHMUS_REPORT_BINDINGS".to_owned(), "1".to_owned())),
            "lan" => general.lan = Some(value("name")?.to_owned()),
            "label" => general.label = true,
            // "all variables": what is done anyway; "more processes than processors": never refused.
            _ => {}
        }
        Ok(())
    }
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

/// The one name of an option with several spellings.
fn option(word: &str) -> Option<&'static str> {
    let name = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
    OPTIONS
        .iter()
        .find(|(_, spellings)| spellings.contains(&name))
        .map(|(name, _)| *name)
}

fn unknown(word: &str) -> JobError {
    let known: Vec<&str> = OPTIONS
        .iter()
        .flat_map(|(_, spellings)| spellings.iter().copied())
        .collect();
    let error = JobError::new(format!("option '{word}' is unknown"));
    match nearest(word.trim_start_matches('-'), &known) {
        Some(near) => error.hint(format!("did you mean '-{near}'?")),
        None => error.hint("see mpiexec -help"),
    }
}

impl General {
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
        template.appnum = appnum;
        template.stage = !self.no_stage;
        template
    }

    fn job(&self, sections: Vec<Section>) -> Result<Described, JobErrors> {
        if let Some(file) = &self.machines {
            return self.on_machines(file, &sections);
        }
        let mut pool = Pool::new(self.hosts.clone(), self.per_host);
        let mut subjobs = Vec::new();
        for (appnum, section) in (0u32..).zip(sections) {
            let dealt = if section.hosts.is_empty() {
                pool.deal(section.count)
            } else {
                Pool::new(section.hosts.clone(), self.per_host).deal(section.count)
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
        sites::name_apart(&mut subjobs);
        Ok(Described::of(Job::new(subjobs)?))
    }
}

/// Hosts with slots, dealt out in order and again from the beginning when more are asked for than there are.
pub(crate) struct Pool {
    hosts: Vec<Host>,
    per_host: Option<u32>,
    /// Host and slot that are next.
    next: (usize, u32),
}

impl Pool {
    pub(crate) fn new(hosts: Vec<Host>, per_host: Option<u32>) -> Self {
        Self {
            hosts,
            per_host,
            next: (0, 0),
        }
    }

    fn slots(&self, host: usize) -> u32 {
        self.hosts[host].slots.or(self.per_host).unwrap_or(1).max(1)
    }

    /// Hosts and counts for so many processes; by default as many as there are slots.
    pub(crate) fn deal(&mut self, count: Option<u32>) -> Vec<(Contact, u32)> {
        if self.hosts.is_empty() {
            return vec![(Contact::Home, count.unwrap_or(1))];
        }
        let all = (0..self.hosts.len()).fold(0u32, |sum, h| sum.saturating_add(self.slots(h)));
        let mut left = count.unwrap_or(all);
        let mut counts = vec![0u32; self.hosts.len()];
        let mut order = Vec::new();
        while left > 0 {
            let (host, used) = self.next;
            let take = left.min(self.slots(host) - used);
            if counts[host] == 0 {
                order.push(host);
            }
            counts[host] += take;
            left -= take;
            let full = used + take == self.slots(host);
            self.next = if full {
                ((host + 1) % self.hosts.len(), 0)
            } else {
                (host, used + take)
            };
        }
        order
            .into_iter()
            .map(|host| (self.hosts[host].contact.clone(), counts[host]))
            .collect()
    }
}

/// Name and spellings of every option.
const OPTIONS: [(&str, &[&str]); 21] = [
    ("n", &["n", "np", "c"]),
    ("host", &["host", "hosts", "H"]),
    ("hostfile", &["f", "hostfile", "machinefile", "default-hostfile"]),
    ("wdir", &["wdir", "wd"]),
    ("env", &["env"]),
    ("genv", &["genv"]),
    ("x", &["x"]),
    ("ppn", &["ppn", "perhost", "npernode", "N"]),
    ("bind-to", &["bind-to"]),
    ("map-by", &["map-by"]),
    ("report-bindings", &["report-bindings"]),
    ("lan", &["lan"]),
    ("label", &["l", "label", "prepend-rank", "tag-output"]),
    ("ignored", &["genvall", "envall"]),
    ("ignored", &["oversubscribe", "allow-run-as-root"]),
    ("dumprsl", &["dumprsl", "dump-rsl", "globusdumprsl", "globus-dump-rsl"]),
    ("globusrsl", &["globusrsl", "globus-rsl"]),
    ("nostage", &["nostage"]),
    ("ignored", &["stage", "leave_pg"]),
    ("help", &["h", "help"]),
    ("version", &["V", "version"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    struct Files;

    impl Outside for Files {
        fn read(&mut self, path: &str) -> Result<String, String> {
            if path == "hosts" {
                Ok("a:2\nb:2\n".into())
            } else {
                Err("no such file".into())
            }
        }
        fn variable(&mut self, name: &str) -> Option<String> {
            (name == "SET").then(|| "yes".into())
        }
    }

    fn words(line: &str) -> Result<Request, JobErrors> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words, &mut Files)
    }

    fn counts(line: &str) -> Vec<(String, u32, u32)> {
        let Ok(Request::Run { described, .. }) = words(line) else {
            panic!("{line} was refused")
        };
        described
            .job
            .subjobs()
            .iter()
            .map(|s| (s.site.clone(), s.count, s.appnum))
            .collect()
    }

    fn subjob(line: &str) -> Subjob {
        let Ok(Request::Run { described, .. }) = words(line) else {
            panic!("{line} was refused")
        };
        described.job.subjobs()[0].clone()
    }

    #[test]
    fn plain() {
        let subjob = subjob("-n 4 -wdir /tmp -env A 1 --genv B 2 -x SET -x C=3 ./a -n 7 : x");
        assert_eq!((subjob.count, subjob.directory.as_deref()), (4, Some("/tmp")));
        assert_eq!(subjob.arguments, ["-n", "7"]);
        let names: Vec<_> = subjob.environment.iter().map(|(n, v)| format!("{n}={v}")).collect();
        assert_eq!(names, ["B=2", "SET=yes", "C=3", "A=1"]);
    }

    #[test]
    fn hosts_are_filled_in_order_and_again() {
        let named =
            |list: &[(&str, u32, u32)]| -> Vec<_> { list.iter().map(|(n, c, a)| ((*n).to_owned(), *c, *a)).collect() };
        assert_eq!(counts("-n 3 -f hosts ./a"), named(&[("a", 2, 0), ("b", 1, 0)]));
        assert_eq!(counts("-n 7 -f hosts ./a"), named(&[("a", 4, 0), ("b", 3, 0)]));
        assert_eq!(counts("-f hosts ./a"), named(&[("a", 2, 0), ("b", 2, 0)]));
        assert_eq!(counts("-host a,b ./a"), named(&[("a", 1, 0), ("b", 1, 0)]));
        assert_eq!(counts("-host a,b -ppn 3 ./a"), named(&[("a", 3, 0), ("b", 3, 0)]));
        assert_eq!(
            counts("-f hosts -n 3 ./a : -n 1 ./b"),
            named(&[("a", 2, 0), ("b", 1, 0), ("b#2", 1, 1)])
        );
        assert_eq!(
            counts("-n 1 ./a : -n 2 ./b"),
            named(&[("home", 1, 0), ("home#2", 2, 1)])
        );
    }

    #[test]
    fn a_lan_is_named_by_the_user_only() {
        let Ok(Request::Run { described, label, .. }) = words("-l -lan rack -host a,b ./a") else {
            panic!()
        };
        assert!(label && !described.job.spans_wide_area());
        let Ok(Request::Run { described, .. }) = words("-host a,b ./a") else {
            panic!()
        };
        assert!(described.job.spans_wide_area());
    }

    #[test]
    fn mistakes_are_named() {
        for (line, part) in [
            ("", "no program"),
            ("-n 4", "no program"),
            ("-n", "lacks its number"),
            ("-n x ./a", "'x' is not a number"),
            ("-n 0 ./a", "-n 0"),
            ("-n 100000 ./a", "65536"),
            ("-hostz a ./a", "did you mean '-host'"),
            ("-f none ./a", "cannot read host file 'none'"),
            ("-x UNSET ./a", "'UNSET' is not set"),
            ("-n 2 ./a :", "no program"),
            ("-host -oX ./a", "not an ssh destination"),
        ] {
            let error = words(line).unwrap_err().to_string();
            assert!(error.contains(part), "{line}: {error}");
        }
        assert_eq!(words("--help"), Ok(Request::Help));
        assert_eq!(words("-version"), Ok(Request::Version));
    }
}
