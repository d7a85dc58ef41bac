// SPDX-License-Identifier: Apache-2.0
//! `isthmus run`, `mpiexec`, `mpirun`: from words to a job to an exit status.

mod beside;
mod bound;
pub(crate) mod carry;
mod how;
mod losing;
mod places;

pub(crate) use self::how::Launch;
use crate::allocated;
use crate::background;
use crate::diagnostic::{note, refuse, warn};
use crate::discover::{self, Place};
use crate::job::{self, Source};
use crate::overwritten;
use crate::plan;
use crate::reach;
use crate::streams;
use crate::terminal::Terminal;
use crate::variables::{settings, variable};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use isthmus_job::forms::{Described, Form};
use isthmus_job::hostfile::Host;
use isthmus_job::sites;
use isthmus_job::transfer::{Input, Pattern, Transfers, parse_shared};
use isthmus_job::{Job, JobError, JobErrors, JobName, Program, Subjob, mpiexec};
use isthmus_launch::session::Log;
use isthmus_launch::{Console, Held, Options, Outcome, Session};
use isthmus_schedule::Overrides;
use isthmus_stage::words;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Variables of this launcher that processes do not get.
pub(crate) const INTERNAL: [&str; 6] = [
    isthmus_settings::RENDEZVOUS.name,
    isthmus_settings::TOKEN.name,
    isthmus_settings::INDEX.name,
    isthmus_settings::SSH.name,
    isthmus_settings::TRACE.name,
    background::VARIABLE,
];

/// Run a program on one or several sites as one MPI job
#[derive(Args, Debug)]
#[command(
    override_usage = "isthmus run [OPTIONS] PROGRAM [ARGUMENT]...\n       isthmus run [OPTIONS] JOB.toml|JOB.rsl\n       \
    isthmus run [OPTIONS] --job MACHINES PROGRAM [ARGUMENT]..."
)]
pub(crate) struct Run {
    /// Total number of processes [default: 1 per site; in a scheduler's allocation, its slots]
    #[arg(short = 'n', long = "processes", value_name = "N", allow_hyphen_values = true)]
    processes: Option<String>,
    /// Site to run on: NAME[:N] or ALIAS=NAME[:N]; NAME is `home` or an ssh destination; repeatable. Its scheduler:
    /// NAME:N,scheduler=slurm,queue=Q,account=A,limit=1h,nodes=2,exclusive,directive=--option (or grid-engine, pbs,
    /// lsf). On top of its own MPI: NAME:N,mpi or NAME:N,mpi=MPIEXEC
    #[arg(short, long = "site", value_name = "SITE")]
    sites: Vec<String>,
    /// Select sites by their resources, from those that --site names or from all known ones: 'cores>=64 &&
    /// rtt(home)<30ms'
    #[arg(long, value_name = "CONDITION")]
    select: Option<String>,
    /// How to distribute processes over the selected sites
    #[arg(long, value_enum, default_value_t, requires = "select")]
    place: Place,
    /// Hosts, in the form of other launchers: A:2,B; each becomes a site
    #[arg(short = 'H', long = "host", value_name = "LIST", conflicts_with_all = ["sites", "select", "file", "from"])]
    hosts: Option<String>,
    /// Number of processes for each site or host that does not give one
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    ppn: Option<String>,
    /// Bind each process to a part of its machine: none, hwthread, core, l3cache, numa or socket [default: core, if
    /// the job has processors of its own and enough of them, otherwise none]
    #[arg(long, value_name = "PART")]
    bind_to: Option<String>,
    /// Bind each process to so many cores, or with --bind-to hwthread to so many hardware threads
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    bind_each: Option<String>,
    /// Processes take the parts of their machine in turn: hwthread, core, l3cache, numa or socket; ppr:N:PART: N on
    /// each part; PART:pe=N: N cores for each process; node: evenly over the hosts [default: core]
    #[arg(long, value_name = "PART")]
    map_by: Option<String>,
    /// So many processes on one part before the next part has its turn
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    map_each: Option<String>,
    /// Order of the ranks, as other launchers have it; only the order of --map-by is there
    #[arg(long, value_name = "PART", hide = true)]
    rank_by: Option<String>,
    /// Each process prints to standard error which processors it may use
    #[arg(long)]
    report_bindings: bool,
    /// What happens when a process, a machine or a site is lost while the job runs: the job ends, or the others are
    /// told and go on [default: end]
    #[arg(long, value_name = "WHAT", value_parser = ["end", "go-on"])]
    on_loss: Option<String>,
    /// Name of the job for isthmus ps, attach and other commands; no other running job here may have it
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Environment variable for all processes; repeatable
    #[arg(short, long = "env", value_name = "NAME=VALUE")]
    environment: Vec<String>,
    /// Working directory of the processes
    #[arg(short = 'C', long, value_name = "DIRECTORY", value_parser = NonEmptyStringValueParser::new())]
    directory: Option<String>,
    /// File or directory to copy into the processes' directory (ISTHMUS_FILES): path, https://, sftp:// or
    /// isthmus://SITE/PATH; `=> NAME` renames it; repeatable
    #[arg(long = "input", value_name = "SOURCE")]
    inputs: Vec<String>,
    /// Files to fetch from there at the end, such as *.out or frames/**; repeatable
    #[arg(long = "output", value_name = "PATTERN")]
    outputs: Vec<String>,
    /// Directory for outputs, with a subdirectory for each site [default: isthmus-results/JOB]
    #[arg(long, value_name = "DIRECTORY", value_parser = NonEmptyStringValueParser::new())]
    results: Option<String>,
    /// Directory at each site whose files processes at other sites may open (MPI_File_open, MPI_File_delete), in
    /// addition to the job's own directories, inputs and outputs; for one site: --site NAME:N,share=DIR; repeatable
    #[arg(long = "share", value_name = "DIRECTORY")]
    shared: Vec<String>,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    pub(crate) launch: Launch,
    /// Program and arguments, or a description of the job ending in .toml or .rsl
    #[arg(
        trailing_var_arg = true,
        required_unless_present_any = ["file", "from"],
        value_name = "PROGRAM"
    )]
    words: Vec<String>,
}

/// `isthmus run`.
pub(crate) fn run(arguments: &Run) -> ExitCode {
    let named = |described: Described| -> Result<Described, JobErrors> {
        let name = arguments.name.as_deref().map(JobName::parse).transpose()?;
        let job = losing::as_said(described.job.called(name), arguments.on_loss.as_deref())?;
        Ok(Described { job, ..described })
    };
    match job_of(arguments).and_then(named) {
        Ok(described) => show_or_launch(described, &arguments.launch),
        Err(errors) => refuse(&errors),
    }
}

/// `mpiexec` and `mpirun`.
pub(crate) fn run_mpiexec(words: &[String]) -> ExitCode {
    match mpiexec::parse(words, &mut Outside) {
        Ok(mpiexec::Request::Help) => {
            crate::print(mpiexec::HELP);
            ExitCode::SUCCESS
        }
        Ok(mpiexec::Request::Version) => {
            crate::print(&format!("mpiexec of isthmus {}", env!("CARGO_PKG_VERSION")));
            ExitCode::SUCCESS
        }
        Ok(mpiexec::Request::Run {
            described,
            label,
            dump,
            launcher,
        }) => show_or_launch(
            described,
            &Launch {
                label,
                dump_rsl: dump,
                time: launcher.limit,
                stdin: launcher.stdin,
                outfile_pattern: launcher.outfile_pattern,
                output_dir: launcher.output_dir,
                ..Launch::default()
            },
        ),
        Err(errors) => refuse(&errors),
    }
}

/// A job is run unless only its description is wanted.
fn show_or_launch(described: Described, how: &Launch) -> ExitCode {
    described.notes.iter().for_each(note);
    let job = described.job.at_home(reach::is_home);
    let described = Described {
        job: losing::as_set(job),
        ..described
    };
    let plain = described.job.clone();
    let completed = reach::catalogue().and_then(|c| Ok(c.complete(plain.clone())?));
    let described = match completed {
        Ok(job) => Described { job, ..described },
        Err(errors) => return refuse(&errors),
    };
    let shown = if how.dump_rsl {
        let directory = std::env::current_dir().unwrap_or_default();
        job::absolute(described.job, &directory).map(|job| job::write(Form::Rsl, &job))
    } else if how.dry_run || described.dry_run {
        if how.json {
            crate::json::print("run --dry-run", plan::json(&described.job));
        } else {
            crate::print(&plan::text(&described.job));
        }
        if !how.dry_run {
            note(&JobError::new("nothing is started: the description says dryRun=yes"));
        }
        Ok(())
    } else {
        return match job::runnable(&described.job) {
            Ok(()) if how.at.is_some() => carry::start(&described.job, how),
            Ok(()) if how.detach && !background::is() => background::start(),
            Ok(()) => launch(described.job, plain, how),
            Err(errors) => refuse(&errors),
        };
    };
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refuse(&error),
    }
}

struct Outside;

impl mpiexec::Outside for Outside {
    fn read(&mut self, path: &str) -> Result<String, String> {
        crate::given::read(&words::path(path)).map_err(|e| e.to_string())
    }
    fn variable(&mut self, name: &str) -> Option<String> {
        std::env::var_os(name).map(words::text)
    }
    fn parts(&mut self, part: isthmus_topology::processors::Part) -> usize {
        isthmus_agent::count_parts(part)
    }
    fn is_own(&mut self, host: &str) -> bool {
        reach::is_home(host)
    }
    fn allocated(&mut self) -> Result<Option<(Vec<Host>, String)>, JobErrors> {
        allocated::hosts()
    }
}

/// What is described.
pub(crate) fn job_of(arguments: &Run) -> Result<Described, JobErrors> {
    if arguments.source.is_given() {
        return job_of_description(&arguments.source, &arguments.words, arguments);
    }
    let (program, rest) = arguments
        .words
        .split_first()
        .ok_or_else(|| JobError::new("no program is named"))?;
    if is_description(program) {
        let source = Source {
            file: Some(program.clone()),
            ..arguments.source.clone()
        };
        return job_of_description(&source, rest, arguments);
    }
    let catalogue = reach::catalogue()?;
    let total = arguments.processes.as_deref().map(sites::parse_count).transpose()?;
    let chosen = match &arguments.select {
        None => None,
        Some(condition) => {
            let ssh = arguments.launch.ssh.as_deref();
            let placed = discover::choose(
                &catalogue,
                ssh,
                &arguments.sites,
                condition,
                total.unwrap_or(1),
                arguments.place,
            )?;
            Some(
                placed
                    .into_iter()
                    .map(|(site, count)| format!("{site}:{count}"))
                    .collect::<Vec<_>>(),
            )
        }
    };
    let template = template(program, rest, arguments)?;
    places::described(arguments, total, chosen, &catalogue, &template)
}

fn template(program: &str, rest: &[String], arguments: &Run) -> Result<Subjob, JobError> {
    let mut template = sites::template(Program::one(program), rest.to_vec());
    let variables = arguments.environment.iter().map(|v| variable(v));
    template.environment = variables.collect::<Result<_, _>>()?;
    template.environment.extend(bound::placement(arguments)?.variables);
    template.directory.clone_from(&arguments.directory);
    template.files = Transfers {
        inputs: arguments
            .inputs
            .iter()
            .map(|i| Input::parse(i))
            .collect::<Result<_, _>>()?,
        outputs: arguments
            .outputs
            .iter()
            .map(|o| Pattern::parse(o))
            .collect::<Result<_, _>>()?,
        results: arguments.results.clone(),
        shared: arguments
            .shared
            .iter()
            .map(|directory| parse_shared(directory))
            .collect::<Result<_, _>>()?,
        ..Transfers::default()
    };
    Ok(template)
}

fn is_description(program: &str) -> bool {
    Path::new(program)
        .extension()
        .is_some_and(|e| e == "toml" || e == "rsl")
}

/// A description says everything, or everything but the program.
fn job_of_description(source: &Source, words: &[String], arguments: &Run) -> Result<Described, JobErrors> {
    let total = arguments.processes.as_deref().map(sites::parse_count).transpose()?;
    let program = match words.split_first() {
        Some((program, rest)) => Some(template(program, rest, arguments)?),
        None => None,
    };
    let (contact, more) = match arguments.sites.as_slice() {
        [] => (None, false),
        [site] => (Some(site.as_str()), false),
        _ => (None, true),
    };
    let own = [&arguments.inputs, &arguments.outputs, &arguments.shared];
    let files = own.iter().any(|list| !list.is_empty()) || arguments.results.is_some();
    let binding = arguments.ppn.is_some() || bound::is_given(arguments);
    let described_whole = program.is_none();
    let for_program =
        binding || total.is_some() || !arguments.environment.is_empty() || arguments.directory.is_some() || files;
    let described = source.read(&job::Beside {
        program: program.as_ref(),
        total,
        per_host: arguments.ppn.as_deref().map(sites::parse_each).transpose()?,
        contact,
        others: more || for_program,
        any_program: false,
    })?;
    // Programs that are not staged are files of their sites.
    match source.file.as_deref() {
        Some(file) if described_whole && !arguments.launch.no_stage => Ok(beside::programs(described, file)?),
        _ => Ok(described),
    }
}

/// Tells, once for the whole job, of variables for Isthmus that mean nothing: of this environment, and of what the job
/// sets for its processes.
fn complain_of_settings(job: &Job) {
    let own = |(name, value): &(String, String)| (name.into(), value.into());
    let of_job = job
        .subjobs()
        .iter()
        .flat_map(|subjob| subjob.environment.iter().map(own));
    let all: BTreeSet<(OsString, OsString)> = std::env::vars_os().chain(of_job).collect();
    for text in isthmus_settings::complaints(all) {
        warn(&JobError::new(text));
    }
}

/// Runs a job. `plain`: without what is known of its sites.
fn launch(job: Job, plain: Job, launch: &Launch) -> ExitCode {
    crate::diagnostic::mute(false);
    complain_of_settings(&job);
    let staging = job
        .with_staging()
        .and_then(|job| Ok((job, plain.with_staging()?.subjobs().to_vec())));
    let (job, described) = match staging {
        Ok(both) => both,
        Err(errors) => return refuse(&errors),
    };
    let prepared = options(launch).and_then(|options| {
        crate::login::outlived(&job, options.limit);
        streams::check(launch.output_dir.as_deref(), &options, &job)?;
        let job = crate::links::pinned(job, launch.links.as_deref())?;
        Ok((Options { described, ..options }, job))
    });
    let prepared = prepared.and_then(|(options, job)| {
        let (identifier, options_again) = (launch.carried(), launch.again());
        let words = identifier.map_or_else(crate::words, |_| carry::typed());
        let again = background::Again {
            identifier,
            options: &options_again,
        };
        let session = background::session(&job, &words, &again)?;
        let place = session.as_ref().map(|s| s.path().to_owned());
        let terminal = Terminal::new(launch.label, launch.progress, place.clone());
        if let Some(file) = launch.events.as_deref().filter(|file| *file != "-") {
            overwritten::prepare("--events", &words::path(file), overwritten::Kind::Json)?;
        }
        let terminal = terminal.with_events(launch.events.as_deref()).map_err(|error| {
            let file = launch.events.as_deref().unwrap_or_default();
            JobError::new(format!("cannot write the events file '{file}': {error}"))
        })?;
        Ok((Options { session, ..options }, job, place, terminal))
    });
    let (options, job, place, mut terminal) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return refuse(&error),
    };
    let name = options.session.as_ref().map_or("", Session::name).to_owned();
    if background::is() {
        let named = name.clone();
        terminal.in_background(Box::new(move || background::leave(&named)));
        background::end_with_command();
    }
    let near = reach::near_names(&options.described);
    let failing = (job.spans_wide_area() && wants_doctor()).then(|| job.clone());
    let outcome = isthmus_launch::run(job, options, terminal);
    let status = conclude(&outcome, place.clone());
    if background::is() {
        background::conclude(&outcome, &name, place.as_deref());
    }
    if outcome.unreached && !outcome.began {
        near.iter().for_each(|hint| crate::complain(hint));
    }
    if let Some(job) =
        failing.filter(|_| !outcome.began && outcome.unreached && outcome.problem.is_some() && outcome.status < 128)
    {
        let found = plain_options(launch.ssh.as_deref())
            .ok()
            .and_then(|options| crate::doctor::after_failure(&job, options));
        if let Some(words) = found {
            crate::complain(&format!("isthmus doctor says:\n{}", words.trim_end()));
        }
    }
    status
}

/// Goes on with a job that has lost its launcher.
///
/// # Errors
/// What the launcher lacks on this machine.
pub(crate) fn go_on(job: Job, session: Session, held: Held, launch: &Launch) -> Result<ExitCode, JobError> {
    let options = options(launch)?;
    let place = session.path().to_owned();
    let mut terminal = Terminal::new(launch.label, launch.progress, Some(place.clone()));
    terminal.hang_up();
    background::say_ready(session.name());
    let since = Duration::from_secs(isthmus_launch::now().saturating_sub(held.began));
    let left = |limit: Duration| limit.saturating_sub(since).max(Duration::from_secs(1));
    let options = Options {
        detach: false,
        limit: options.limit.map(left),
        patience: options.silence,
        input: isthmus_launch::InputTo::Nobody,
        session: Some(session),
        held: Some(held),
        ..options
    };
    let outcome = isthmus_launch::run(job, options, terminal);
    Ok(conclude(&outcome, Some(place)))
}

/// Says how a job has ended. `place`: where it was on this machine.
fn conclude(outcome: &Outcome, place: Option<PathBuf>) -> ExitCode {
    let statistics = isthmus_settings::STATS.read(std::env::var_os);
    if statistics && !outcome.statistics.is_empty() {
        crate::complain(&outcome.statistics.to_string());
        if !outcome.links.is_empty() {
            crate::complain(&crate::links::report(&outcome.links));
        }
        if outcome.paths.iter().any(|p| p.path != "none") {
            crate::complain(&crate::doctor::paths(&outcome.paths));
        }
    }
    for line in outcome.statistics.links(statistics) {
        crate::complain(&format!("isthmus: {line}"));
    }
    if let Some(notice) = &outcome.notice {
        crate::complain(&format!("isthmus: {notice}"));
    }
    // The logs of a job in the background say how it ended.
    if let Some(place) = place.filter(|p| p.join("outcome").exists()) {
        if let Ok(mut log) = Log::open(&place, "errors") {
            let _ = log.write(told(outcome).as_bytes());
        }
    }
    report(outcome)
}

/// Whether the doctor is called after a start that failed: where somebody reads it, or the user says so.
fn wants_doctor() -> bool {
    use std::io::IsTerminal;
    let said = isthmus_settings::DOCTOR.read(std::env::var_os);
    said.unwrap_or_else(|| std::io::stderr().is_terminal())
}

/// For what starts no processes.
pub(crate) fn plain_options(ssh: Option<&str>) -> Result<Options, JobError> {
    options(&Launch {
        ssh: ssh.map(str::to_owned),
        ..Launch::default()
    })
}

/// What went wrong, and what to do about it.
fn told(outcome: &Outcome) -> String {
    let mut text = String::new();
    if let Some(problem) = &outcome.problem {
        text.push_str(&format!("isthmus: error: {problem}\n"));
        if !outcome.hint.is_empty() {
            text.push_str(&format!("  hint: {}\n", outcome.hint));
        }
    }
    crate::diagnostic::plain(&text)
}

fn report(outcome: &Outcome) -> ExitCode {
    let text = told(outcome);
    if !text.is_empty() {
        crate::complain(text.trim_end());
    }
    // A status that a shell cannot show must not look like success.
    let shown = (outcome.status & 0xff) as u8;
    ExitCode::from(if shown == 0 && outcome.status != 0 { 1 } else { shown })
}

fn options(launch: &Launch) -> Result<Options, JobError> {
    let binary =
        std::env::current_exe().map_err(|e| JobError::new(format!("cannot find the isthmus binary itself: {e}")))?;
    let directory =
        std::env::current_dir().map_err(|e| JobError::new(format!("the current directory cannot be used: {e}")))?;
    overrides()?;
    Ok(Options {
        library: library(&binary),
        binary,
        ssh: reach::ssh_command(launch.ssh.as_deref()),
        detach: background::is(),
        terminal: std::fs::File::open("/dev/tty").is_ok(),
        stage: !launch.no_stage,
        patience: isthmus_settings::START_TIMEOUT.read(std::env::var_os),
        environment: settings(launch.trace.is_some(), &INTERNAL),
        directory,
        input: streams::input(launch.stdin.as_deref())?,
        output: streams::output(launch.output_dir.as_deref(), launch.outfile_pattern.as_deref())?,
        limit: launch.time.as_deref().map(limit).transpose()?,
        hang: launch.hang.as_deref().map(limit).transpose()?,
        silence: isthmus_settings::AWAY.read(std::env::var_os),
        lease: isthmus_settings::LEASE.read(std::env::var_os),
        session: None,
        trace: launch.trace.as_deref().map(words::path),
        links: crate::links::options(),
        catalogue: reach::catalogue().unwrap_or_default(),
        described: Vec::new(),
        held: None,
        meet: launch.meets()?,
        world: launch.world()?,
    })
}

fn limit(text: &str) -> Result<Duration, JobError> {
    isthmus_job::allocation::limit(text).map(|seconds| Duration::from_secs(u64::from(seconds)))
}

/// The user's word about the choice of collective algorithms, as the processes will read it.
pub(crate) fn overrides() -> Result<Overrides, JobError> {
    let text = isthmus_settings::COLL.read(std::env::var_os).unwrap_or_default();
    Overrides::parse(&text).map_err(|error| {
        JobError::new(format!("the environment variable ISTHMUS_COLL is '{text}': {error}"))
            .hint("rules are OPERATION[@LEVEL][:SIZES]=NAME[,seg=SIZE][,lanes=N], separated by ;")
    })
}

/// The MPI library: beside the binary in an installed tree (`../lib`) or in a build tree.
pub(crate) fn library(binary: &Path) -> Option<PathBuf> {
    const NAME: &str = "libmpi_abi.so.1";
    let here = binary.parent()?;
    let places = [
        here.join("../lib"),
        here.join("../lib64"),
        here.to_owned(),
        here.join("lib"),
    ];
    let named = isthmus_settings::LIBRARY_DIRECTORY.read(std::env::var_os);
    let found = named
        .into_iter()
        .chain(places)
        .map(|place| place.join(NAME))
        .find(|file| file.is_file());
    found.and_then(|file| {
        file.canonicalize()
            .ok()
            .map(|real| if real.ends_with(NAME) { real } else { file })
    })
}
