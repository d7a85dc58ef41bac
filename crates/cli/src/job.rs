// SPDX-License-Identifier: Apache-2.0
//! Descriptions of jobs: which one is meant, what it says, and `isthmus job`, which converts them.

use crate::{diagnostic, given};
use clap::{Args, Subcommand};
use isthmus_job::attributes::{ATTRIBUTES, Fate};
use isthmus_job::forms::{Described, Form, Input};
use isthmus_job::transfer::Location;
use isthmus_job::{Job, JobError, JobErrors, Program, Subjob, rsl, sites};
use isthmus_stage::words;
use isthmus_wire::boot::MAX_NODE_PROCESSES;
use std::path::Path;
use std::process::ExitCode;

/// Convert job descriptions, and print an example of a job file
#[derive(Args, Debug)]
pub(crate) struct JobCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    Convert(Convert),
    /// Print a job file with all fields and comments
    Example,
    /// List the attributes of RSL, and how Isthmus treats each
    Attributes {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// Write a description of a job in another form
#[derive(Args, Debug)]
struct Convert {
    #[command(flatten)]
    source: Source,
    /// Format of the result: toml, rsl, pacx, machines, mpich, openmpi or slurm
    #[arg(long, value_name = "FORMAT")]
    to: String,
    /// Number of processes, for forms that name machines only
    #[arg(short = 'n', long = "processes", value_name = "N")]
    processes: Option<String>,
    /// The description, unless --job names it or --from slurm takes it from the environment
    #[arg(value_name = "FILE")]
    description: Option<String>,
    /// Program and arguments, for forms that name machines only
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    words: Vec<String>,
}

/// Which description.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Source {
    /// Description of the job: a job file, RSL, or a host file (PACX-MPI, MPICH-G2, MPICH, Open MPI); `-` is standard
    /// input
    #[arg(short = 'j', long = "job", value_name = "FILE")]
    pub(crate) file: Option<String>,
    /// Format of the description: toml, rsl, pacx, machines, mpich, openmpi or slurm [default: recognised by name and
    /// content]; slurm without a file reads the environment of an allocation
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<String>,
    /// Value of an RSL variable; repeatable
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE")]
    pub(crate) define: Vec<String>,
}

/// What the command line says beside a description.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beside<'a> {
    /// What runs where the form does not say so.
    pub(crate) program: Option<&'a Subjob>,
    /// Number of processes.
    pub(crate) total: Option<u32>,
    /// Processes of each host that has no number of its own.
    pub(crate) per_host: Option<u32>,
    /// Where a request of RSL runs that does not say so.
    pub(crate) contact: Option<&'a str>,
    /// Whether there is more, which a description of a whole job has no room for.
    pub(crate) others: bool,
    /// Whether it does not matter what runs.
    pub(crate) any_program: bool,
}

impl Source {
    /// Whether a description is named.
    pub(crate) fn is_given(&self) -> bool {
        self.file.is_some() || self.from.is_some()
    }

    /// Reads it.
    pub(crate) fn read(&self, beside: &Beside<'_>) -> Result<Described, JobErrors> {
        let form = self.from.as_deref().map(Form::parse).transpose()?;
        let (file, text) = self.text(form)?;
        let form = form.unwrap_or_else(|| Form::detect(&file, &text));
        if beside.contact.is_some() && form != Form::Rsl {
            let error = JobError::new(format!("both '{file}' and --site say where the processes run"));
            return Err(error.hint("leave out --site").into());
        }
        if form.names_program() && (beside.program.is_some() || beside.others) {
            return Err(JobError::new(format!("'{file}' describes the whole job"))
                .hint("leave out other options and arguments, or write them into the file")
                .into());
        }
        let mut bindings = rsl::bindings(|name| std::env::var(name).ok());
        bindings.extend(self.definitions()?);
        if form != Form::Rsl {
            self.refuse_definitions(&format!("'{file}' is not RSL"))?;
        }
        let any = sites::template(Program::one("PROGRAM"), Vec::new());
        let catalogue = crate::reach::catalogue()?;
        let mut described = form.read(&Input {
            catalogue: Some(&catalogue),
            bindings: &bindings,
            program: beside.program.or_else(|| beside.any_program.then_some(&any)),
            total: beside.total,
            contact: beside.contact,
            per_host: beside.per_host,
            is_own: crate::reach::is_home,
            ..Input::of(&text, &file)
        })?;
        let astray = form.note_of_home(&described.job, &mut |host| crate::reach::is_home(host));
        described.notes.extend(astray);
        Ok(described)
    }

    fn definitions(&self) -> Result<Vec<(String, String)>, JobError> {
        self.define.iter().map(|define| definition(define)).collect()
    }

    /// Values of variables are for RSL; where there is none they would be ignored.
    pub(crate) fn refuse_definitions(&self, why: &str) -> Result<(), JobError> {
        self.definitions()?;
        match self.define.first() {
            None => Ok(()),
            Some(define) => {
                let error = JobError::new(format!(
                    "--define {define} gives a variable of RSL its value, and {why}"
                ));
                Err(error.hint("leave it out; -e NAME=VALUE sets a variable of the environment"))
            }
        }
    }

    fn text(&self, form: Option<Form>) -> Result<(String, String), JobError> {
        match self.file.as_deref() {
            Some("-") => given::text(std::io::stdin())
                .map(|text| ("standard input".to_owned(), text))
                .map_err(|error| JobError::new(format!("cannot read the job from standard input: {error}"))),
            Some(file) => {
                let text = given::read(&words::path(file)).map_err(|error| {
                    let here = std::env::current_dir().unwrap_or_default();
                    let hint = format!(
                        "relative names are looked up in {}; isthmus job example prints a job file with all fields",
                        here.display()
                    );
                    JobError::new(format!("cannot read job file '{file}': {error}")).hint(hint)
                })?;
                Ok((file.to_owned(), text))
            }
            None if form == Some(Form::Slurm) => Ok(("the environment".to_owned(), environment())),
            None => Err(JobError::new("no description of a job is named").hint("write --job FILE")),
        }
    }
}

/// The variables of Slurm as a description.
pub(crate) fn environment() -> String {
    let all = std::env::vars_os().filter_map(|(n, v)| Some((n.into_string().ok()?, v.into_string().ok()?)));
    let slurm = all.filter(|(name, value)| name.starts_with("SLURM") && !value.contains('\n'));
    slurm.map(|(name, value)| format!("{name}={value}\n")).collect()
}

fn definition(text: &str) -> Result<(String, String), JobError> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(JobError::new(format!("'{text}' defines nothing")).hint("write --define NAME=VALUE")),
    }
}

/// `isthmus job`.
pub(crate) fn job(command: &JobCommand) -> ExitCode {
    match &command.verb {
        Verb::Attributes { json: true } => {
            let all = ATTRIBUTES
                .iter()
                .map(|a| serde_json::json!({ "name": a.name, "fate": fate(a).0, "how": fate(a).1 }));
            crate::json::print(
                "job attributes",
                serde_json::json!({ "attributes": all.collect::<Vec<_>>() }),
            );
            ExitCode::SUCCESS
        }
        Verb::Attributes { json: false } => {
            crate::print(&attributes());
            ExitCode::SUCCESS
        }
        Verb::Example => {
            crate::print(isthmus_job::document::EXAMPLE.trim_end());
            ExitCode::SUCCESS
        }
        Verb::Convert(convert) => match converted(convert) {
            Ok(()) => ExitCode::SUCCESS,
            Err(errors) => diagnostic::refuse(&errors),
        },
    }
}

fn converted(convert: &Convert) -> Result<(), JobErrors> {
    let to = Form::parse(&convert.to)?;
    let total = convert.processes.as_deref().map(sites::parse_count).transpose()?;
    let mut source = convert.source.clone();
    let mut words = convert.description.iter().chain(&convert.words);
    if source.file.is_none() && source.from.as_deref() != Some("slurm") {
        source.file = words.next().cloned();
    }
    let program = words
        .next()
        .map(|program| sites::template(Program::one(program), words.cloned().collect()));
    let described = source.read(&Beside {
        program: program.as_ref(),
        total,
        any_program: !to.names_program(),
        ..Beside::default()
    })?;
    described.notes.iter().for_each(diagnostic::note);
    write(to, &described.job);
    Ok(())
}

/// Prints a job in a form and says what the form has no words for.
pub(crate) fn write(form: Form, job: &Job) {
    let written = form.write(job);
    // TOML has a way to write such characters, so they come back.
    let text = match form {
        Form::Toml => crate::json::escaped(&written.text, |c| format!("\\U{:08X}", u32::from(c))),
        _ => written.text,
    };
    crate::print(text.trim_end_matches('\n'));
    for lost in written.lost {
        diagnostic::note(&JobError::new(format!("{} cannot say: {lost}", form.name())));
    }
}

/// The job with the names of staged programs as the whole system knows them, so that they mean the same elsewhere.
pub(crate) fn absolute(job: Job, directory: &Path) -> Result<Job, JobError> {
    let mut subjobs = job.subjobs().to_vec();
    let sections = subjobs.iter_mut().flat_map(|subjob| &mut subjob.sections);
    for path in sections.filter_map(|section| section.program.any.as_mut()) {
        if path.contains('/') && !path.contains("://") {
            *path = words::text(directory.join(words::path(path))).replace("/./", "/");
        }
    }
    job.with_subjobs(subjobs)
}

/// Refuses what can be described and cannot be run, and tells what is kept without effect.
pub(crate) fn runnable(job: &Job) -> Result<(), JobErrors> {
    let mut errors = JobErrors::default();
    for subjob in job.subjobs() {
        for url in subjob.programs().filter(|p| p.contains("://")) {
            if let Err(error) = Location::parse(url) {
                let problem = format!("site '{}': program '{url}': {}", subjob.site, error.problem);
                errors.push(JobError { problem, ..error });
            }
        }
        if let Err(error) = check_node(subjob) {
            errors.push(error);
        }
    }
    if let Err(problems) = job.clone().with_staging() {
        errors.extend(problems);
    }
    errors.or(Some(()))?;
    for (site, request, why) in job.unheeded() {
        diagnostic::note(&JobError::new(format!("site '{site}': {request} has no effect: {why}")));
    }
    Ok(())
}

/// Without a scheduler, and without an MPI of the machine that knows of others, all processes of a subjob are on one
/// node.
fn check_node(subjob: &Subjob) -> Result<(), JobError> {
    let one_node = subjob.allocation.is_none() && subjob.vendor().is_none();
    if !one_node || subjob.count <= MAX_NODE_PROCESSES {
        return Ok(());
    }
    let (count, site) = (subjob.count, &subjob.site);
    let problem = format!("{count} processes on site '{site}' are above the limit of {MAX_NODE_PROCESSES} per node");
    Err(JobError::new(problem)
        .hint("spread them over more sites with --site NAME:N, or let a scheduler give more nodes"))
}

/// What becomes of an attribute: one word, and more of it.
fn fate(attribute: &isthmus_job::attributes::Attribute) -> (&'static str, &'static str) {
    match attribute.fate {
        Fate::Understood(field) => ("understood", field),
        Fate::Scheduled(field) => ("scheduled", field),
        Fate::Obeyed(what) => ("obeyed", what),
        Fate::Kept(why) => ("kept", why),
        Fate::Refused(hint) => ("refused", hint),
    }
}

fn attributes() -> String {
    let mut text = String::new();
    for (title, wanted) in [
        (
            "Isthmus does these. The right column is the matching field of a job file:",
            "understood",
        ),
        (
            "Asked of the scheduler, if the contact names one, as in HOST/jobmanager-slurm:",
            "scheduled",
        ),
        ("Done by the launcher:", "obeyed"),
        ("Accepted without effect; isthmus job convert keeps them:", "kept"),
        ("Refused:", "refused"),
    ] {
        text.push_str(&format!("{title}\n"));
        for attribute in ATTRIBUTES {
            let (fate, what) = fate(attribute);
            if fate == wanted {
                text.push_str(format!("  {:<24}{what}", attribute.name).trim_end());
                text.push('\n');
            }
        }
        text.push('\n');
    }
    text.push_str("Case and underscores in names do not matter: maxWallTime = max_wall_time.");
    text
}
