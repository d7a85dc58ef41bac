// SPDX-License-Identifier: Apache-2.0
//! Options of `isthmus run` about the launcher and not the job.

use crate::terminal::Show;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use isthmus_job::gathering::WorldPart;
use isthmus_job::{Contact, JobError};
use isthmus_launch::{World, can_meet_at};
use isthmus_wire::port::PortName;

/// What concerns the launcher and not the job.
#[derive(Args, Debug, Default)]
pub(crate) struct Launch {
    /// Begin each line of output with its rank
    #[arg(short, long)]
    pub(super) label: bool,
    /// Write the output of each process into a file of its own: DIRECTORY/rank-N.out and .err
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "outfile_pattern", value_parser = NonEmptyStringValueParser::new())]
    pub(super) output_dir: Option<String>,
    /// The same with file names of your own: %r is the rank, %s the site, %t out or err, %j the job
    #[arg(long, value_name = "PATTERN")]
    pub(super) outfile_pattern: Option<String>,
    /// Rank that gets the standard input, or all or none [default: 0]
    #[arg(long, value_name = "RANK", allow_hyphen_values = true)]
    pub(super) stdin: Option<String>,
    /// Time limit for the job: 90s, 30min, 2h; then it ends with status 124 [default: none]
    #[arg(long, value_name = "LIMIT")]
    pub(super) time: Option<String>,
    /// When all ranks have done nothing but wait for this time (90s, 10min), print what each waits for; see isthmus
    /// where
    #[arg(long, value_name = "TIME")]
    pub(super) hang: Option<String>,
    /// Write the events of the job to FILE as lines of JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(super) events: Option<String>,
    /// Record the messages, collective operations and connections of all processes on one time line, in a file for
    /// ui.perfetto.dev or chrome://tracing
    #[arg(long, value_name = "FILE")]
    pub(super) trace: Option<String>,
    /// How to show the states of subjobs: as a table on a terminal, as lines, or not at all
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    pub(super) progress: Show,
    /// Run in the background: print the name of the job and return when all processes have begun, or when their
    /// schedulers have accepted them (with --world, when this part waits for the others or has joined them); see
    /// isthmus ps, attach, logs, kill
    #[arg(long)]
    pub(super) detach: bool,
    /// Start one part of a job whose parts are started by hand, in any order, and share one MPI_COMM_WORLD: NAME=2of3
    /// is part 2 of 3. Parts find each other on one machine, or where the home directory is shared; elsewhere see
    /// --meet and isthmus join
    #[arg(long, value_name = "NAME=PARTofPARTS", conflicts_with = "at")]
    pub(super) world: Option<String>,
    /// ssh destination through which jobs connect (MPI_Comm_connect) that cannot reach each other directly, and where
    /// they look up published names. With --world, the parts meet there [default: $ISTHMUS_MEET]
    #[arg(long, value_name = "HOST")]
    pub(super) meet: Option<String>,
    /// The ticket of those that wait for this part
    #[arg(skip)]
    pub(super) ticket: Option<Box<PortName>>,
    /// Run the launcher at this site, so that the job does not need this machine; with --detach. The launcher
    /// connects to the other sites with the ssh keys of that site
    #[arg(long, value_name = "SITE", requires = "detach")]
    pub(super) at: Option<String>,
    /// The job came from another machine, with this identifier
    #[arg(long, value_name = "IDENTIFIER", hide = true)]
    pub(super) carried: Option<String>,
    /// Do not copy the program: each site runs its own program of that name
    #[arg(long)]
    pub(super) no_stage: bool,
    /// ssh client to use [default: $ISTHMUS_SSH or ssh]
    #[arg(long, value_name = "COMMAND", value_parser = NonEmptyStringValueParser::new())]
    pub(super) ssh: Option<String>,
    /// File with fixed values for links between sites [default: $ISTHMUS_LINKS_FILE]
    #[arg(long, value_name = "FILE")]
    pub(super) links: Option<String>,
    /// Print what would run where, and start nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// With --dry-run: print the plan as JSON
    #[arg(long, requires = "dry_run")]
    pub(super) json: bool,
    /// Print the job as RSL, and start nothing
    #[arg(long)]
    pub(super) dump_rsl: bool,
}

impl Launch {
    /// The identifier that the job has from the machine where it was started.
    pub(crate) fn carried(&self) -> Option<&str> {
        let is_one = |id: &&str| id.len() == 8 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        self.carried.as_deref().filter(is_one)
    }

    /// Whether these options mean something for processes that are added to a job.
    ///
    /// # Errors
    /// One of them is about a launcher, and that of the job has its own.
    pub(crate) fn is_for_added(&self) -> Result<(), JobError> {
        let own = self.everywhere(&["--progress"]).into_iter();
        let own = own.filter(|option| option != "--no-stage");
        let values = [
            ("--stdin", self.stdin.as_deref()),
            ("--ssh", self.ssh.as_deref()),
            ("--links", self.links.as_deref()),
            ("--world", self.world.as_deref()),
            ("--at", self.at.as_deref()),
        ];
        let values = values.into_iter().filter(|(_, value)| value.is_some());
        let values = values.map(|(option, _)| option.to_owned());
        let flags = [
            ("--detach", self.detach),
            ("--dry-run", self.dry_run),
            ("--dump-rsl", self.dump_rsl),
        ];
        let flags = flags.into_iter().filter(|(_, given)| *given);
        let mut all = own.chain(values).chain(flags.map(|(option, _)| option.to_owned()));
        match all.next() {
            None => Ok(()),
            Some(option) => {
                let error = JobError::new(format!("{option} concerns the launcher, and the job already has one"));
                Err(error.hint("leave it out: added processes share the output, the input and the end of the job"))
            }
        }
    }

    /// Whether each site has its own program.
    pub(crate) fn leaves_programs(&self) -> bool {
        self.no_stage
    }

    /// Whether the job is to run in the background.
    pub(crate) fn leaves_terminal(&self) -> bool {
        self.detach
    }

    /// It is a part of the world that this ticket is for.
    ///
    /// # Errors
    /// It asks for what parts cannot have.
    pub(crate) fn take_ticket(&mut self, ticket: PortName) -> Result<(), JobError> {
        self.ticket = Some(Box::new(ticket));
        if let Some(site) = &self.at {
            let error = JobError::new("a part of a world cannot be run with --at: its launcher is where its user is");
            return Err(error.hint(format!("run the command with --detach at '{site}'")));
        }
        Ok(())
    }

    /// Whether others like it are meant to be started beside it.
    pub(super) fn is_one_of_several(&self) -> bool {
        self.world.is_some() || self.ticket.is_some()
    }

    /// What world the job is a part of, if it is one.
    ///
    /// # Errors
    /// What is wrong with what is said of it.
    pub(super) fn world(&self) -> Result<Option<World>, JobError> {
        let part = self.world.as_deref().map(WorldPart::parse).transpose()?;
        let place = self.meet.as_deref().map(Contact::parse).transpose()?;
        Ok(match (&self.ticket, part, place) {
            (None, Some(part), Some(Contact::Ssh(place))) => Some(World::Met(part, place)),
            (None, None, Some(Contact::Ssh(_))) => None,
            (Some(ticket), part, None | Some(Contact::Ssh(_))) => Some(World::Ticket(ticket.clone(), part)),
            (_, _, Some(_)) => {
                let error = JobError::new("--meet names a place that all parts reach by ssh");
                return Err(error.hint("write --meet HOST as for ssh"));
            }
            (None, part, None) => part.map(World::Named),
        })
    }

    /// The host at which the job meets other jobs.
    ///
    /// # Errors
    /// It is no ssh destination.
    pub(super) fn meets(&self) -> Result<Option<String>, JobError> {
        let named = || isthmus_settings::MEET.read(std::env::var_os);
        match self
            .meet
            .clone()
            .or_else(named)
            .map(|host| Contact::parse(&host))
            .transpose()?
        {
            None => Ok(None),
            // In a world this would be found when all parts are there, and end all of them.
            Some(Contact::Ssh(host)) => can_meet_at(&host).map(|()| Some(host)),
            Some(_) => {
                let error = JobError::new("--meet names the host at which jobs meet; that cannot be this machine");
                Err(error.hint("write --meet HOST as for ssh; all of the jobs must reach it"))
            }
        }
    }

    /// The same options for a launcher that follows this one, without those that would begin a file anew.
    pub(crate) fn again(&self) -> Vec<String> {
        let here = [("--ssh", self.ssh.as_deref()), ("--links", self.links.as_deref())];
        let here = here
            .into_iter()
            .filter_map(|(option, value)| Some(format!("{option}={}", value?)));
        self.everywhere(&["--events", "--trace"])
            .into_iter()
            .chain(here)
            .collect()
    }

    /// The same options for the command that begins the job at another site. Files that they name are files there.
    ///
    /// # Errors
    /// One of them is about this machine.
    pub(super) fn elsewhere(&self, site: &str) -> Result<Vec<String>, JobError> {
        let here = [
            ("--stdin", self.stdin.as_deref().filter(|to| *to != "none")),
            ("--ssh", self.ssh.as_deref()),
        ];
        if let Some((option, _)) = here.iter().find(|(_, value)| value.is_some()) {
            let error = JobError::new(format!(
                "{option} concerns this machine, but with --at the launcher runs at '{site}'"
            ));
            return Err(error.hint(format!("leave out {option}; or run the command at '{site}'")));
        }
        Ok(self.everywhere(&[]))
    }

    /// The options that mean the same wherever the launcher is.
    fn everywhere(&self, but: &[&str]) -> Vec<String> {
        let progress = self.progress.to_possible_value();
        let progress = progress.as_ref().map(clap::builder::PossibleValue::get_name);
        let valued = [
            ("--output-dir", self.output_dir.as_deref()),
            ("--outfile-pattern", self.outfile_pattern.as_deref()),
            ("--time", self.time.as_deref()),
            ("--hang", self.hang.as_deref()),
            ("--events", self.events.as_deref()),
            ("--trace", self.trace.as_deref()),
            ("--meet", self.meet.as_deref()),
            ("--progress", progress),
        ];
        let flags = [("--label", self.label), ("--no-stage", self.no_stage)];
        let valued = valued
            .into_iter()
            .filter(|(option, _)| !but.contains(option))
            .filter_map(|(option, value)| Some(format!("{option}={}", value?)));
        let flags = flags
            .into_iter()
            .filter(|(_, given)| *given)
            .map(|(option, _)| option.to_owned());
        flags.chain(valued).collect()
    }
}
