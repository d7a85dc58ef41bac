// SPDX-License-Identifier: Apache-2.0
//! The commands: isthmus, mpiexec, mpirun, mpicc, mpicxx. The only room that prints.
#![deny(unsafe_code)]

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use isthmus_job::Paint;
use isthmus_wire::word;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

mod adaptor;
mod add;
mod allocated;
mod askpass;
mod background;
mod compiler;
mod cp;
mod described;
mod diagnostic;
mod discover;
mod doctor;
mod elsewhere;
mod examined;
mod fortran;
mod given;
mod help;
mod info;
mod inherited;
mod job;
mod join;
mod joined;
mod json;
mod kept;
mod limits;
mod links;
mod login;
mod manual;
mod names;
mod overwritten;
mod plan;
mod ps;
mod rates;
mod reach;
mod reader;
mod relay;
mod report;
mod run;
mod screen;
mod sessions;
mod simulate;
mod sites;
mod spelled;
mod streams;
mod successor;
mod terminal;
mod top;
mod trace;
mod usage;
mod variables;
mod verbs;
mod whereabouts;

/// Run one MPI program across machines, clusters and sites as if they were one
#[derive(Parser, Debug)]
#[command(name = "isthmus", version, disable_help_subcommand = false)]
struct Command {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    Run(Box<run::Run>),
    Join(Box<join::Join>),
    Add(Box<add::Add>),
    Job(job::JobCommand),
    Info(info::Info),
    Links(links::Links),
    Ps(ps::Ps),
    Attach(sessions::Attach),
    Logs(sessions::Logs),
    Signal(sessions::Signal),
    Kill(sessions::Kill),
    Top(top::Top),
    #[command(name = "where")]
    Whereabouts(whereabouts::Where),
    Edit(sessions::EditCommand),
    Names(names::Names),
    Doctor(doctor::Doctor),
    Report(report::Report),
    Trace(trace::Trace),
    Explain(simulate::Explain),
    Simulate(simulate::Simulate),
    Adaptor(adaptor::Adaptor),
    Fortran(fortran::Fortran),
    Sites(sites::Sites),
    Discover(discover::Discover),
    #[command(name = "cp")]
    Copy(cp::Copy),
    Cache(cp::Cache),
    Login(login::Login),
    Completions(manual::Completions),
    #[command(hide = true)]
    Complete(manual::Complete),
    #[command(hide = true)]
    Manual(manual::Manual),
    /// Serve a coordinator over standard input and output
    #[command(hide = true)]
    Agent {
        /// Whoever starts this is the launcher itself, on this machine
        #[arg(long)]
        home: bool,
        /// Carry a connection to the agent of this job and subjob that is here already
        #[arg(long, num_args = 2, value_names = ["JOB", "SUBJOB"])]
        resume: Vec<String>,
    },
    /// Serve files and what this machine has over standard input and output
    #[command(hide = true)]
    Service,
    /// Find out whether ssh destinations are reached from here without a question
    #[command(hide = true)]
    Reach {
        destinations: Vec<String>,
    },
    /// Run a command for whoever typed it at another site, over standard input and output
    #[command(hide = true)]
    Relay,
    /// Be the launcher of what a program without one spawns, which asks over standard input
    #[command(hide = true)]
    Spawned,
    /// Be the launcher of a job that has lost its own
    #[command(hide = true)]
    TakeUp(Box<successor::TakeUp>),
    /// Carry connections between processes of different sites, for the agent that started this
    #[command(hide = true)]
    Gateway,
    /// Serve the agent that a scheduler started this for
    #[command(hide = true)]
    Node {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

/// Something that was to be printed has no place: no command has ended well then.
static OUTPUT_LOST: AtomicBool = AtomicBool::new(false);

fn main() -> ExitCode {
    limits::tell_panics();
    limits::settle_signals();
    let status = limits::with_stack(command);
    if OUTPUT_LOST.load(Ordering::Relaxed) {
        return ExitCode::FAILURE;
    }
    status
}

fn command() -> ExitCode {
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    let called = Path::new(&name)
        .file_name()
        .and_then(|n| n.to_str())
        .unwrap_or_default()
        .to_owned();
    if called == isthmus_reach::asking::ASKPASS {
        return askpass::run(arguments.next().map(|question| question.to_string_lossy().into_owned()));
    }
    if called == "isthmus" || !is_alias(&called) {
        let mut rest = std::env::args_os().skip(1);
        if rest.next().is_some_and(|a| a == isthmus_agent::TRAMPOLINE) {
            let (message, status) = isthmus_agent::trampoline(rest);
            complain(&format!("isthmus: error: {message}"));
            return ExitCode::from(status);
        }
        let mut rest = std::env::args_os().skip(1);
        if rest.next().is_some_and(|a| a == isthmus_agent::SWEEPER) {
            isthmus_agent::sweep(rest);
            return ExitCode::SUCCESS;
        }
        let mut rest = std::env::args_os().skip(1);
        if rest.next().is_some_and(|a| a == isthmus_agent::GUARD) {
            return match isthmus_agent::run_guard(rest) {
                Ok(status) => ExitCode::from(status),
                Err((message, status)) => {
                    complain(&format!("isthmus: error: {message}"));
                    ExitCode::from(status)
                }
            };
        }
        return limits::check().map_or_else(|error| diagnostic::refuse(&error), |()| isthmus());
    }
    if let Some(language) = compiler::Language::of_wrapper(&called) {
        return compiler::main(language, arguments.collect());
    }
    if let Err(error) = limits::check() {
        return diagnostic::refuse(&error);
    }
    run::run_mpiexec(&arguments.map(isthmus_stage::words::text).collect::<Vec<_>>())
}

/// The words of the command line for people to read. The first, which is left out, may have any name.
pub(crate) fn words() -> Vec<String> {
    let words = std::env::args_os().skip(1);
    words.map(isthmus_stage::words::text).collect()
}

fn is_alias(name: &str) -> bool {
    matches!(name, "mpiexec" | "mpirun" | "mpiexec.isthmus" | "mpirun.isthmus")
        || compiler::Language::of_wrapper(name).is_some()
}

/// All commands, as their help shows them.
fn grammar() -> clap::Command {
    help::sorted(Command::command())
}

fn isthmus() -> ExitCode {
    diagnostic::mute(background::is());
    let command = verbs::with_numbers(grammar());
    let words: Vec<_> = std::env::args_os().collect();
    let words = match verbs::check(&words, &command).and_then(|()| spelled::spelled(words, &command)) {
        Ok(words) => words,
        Err(error) => return diagnostic::refuse(&error),
    };
    let parsed = command.clone().try_get_matches_from(words.clone());
    let verb = match parsed.and_then(|matches| Command::from_arg_matches(&matches)) {
        Ok(command) => command.verb,
        Err(error) => return unparsed(&error, &words, &command),
    };
    if let Some(status) = elsewhere::command(&verb) {
        return status;
    }
    match verb {
        Verb::Run(arguments) => run::run(&arguments),
        Verb::Join(arguments) => join::join(*arguments),
        Verb::Add(arguments) => add::add(&arguments),
        Verb::Job(command) => job::job(&command),
        Verb::Info(arguments) => info::info(&arguments),
        Verb::Doctor(arguments) => doctor::doctor(&arguments),
        Verb::Links(arguments) => links::links(&arguments),
        Verb::Adaptor(arguments) => adaptor::adaptor(&arguments),
        Verb::Fortran(arguments) => arguments.run(),
        Verb::Ps(arguments) => ps::ps(&arguments),
        Verb::Attach(arguments) => sessions::attach(&arguments),
        Verb::Logs(arguments) => sessions::logs(&arguments),
        Verb::Signal(arguments) => sessions::signal(&arguments),
        Verb::Kill(arguments) => sessions::kill(&arguments),
        Verb::Top(arguments) => top::top(&arguments),
        Verb::Whereabouts(arguments) => whereabouts::whereabouts(&arguments),
        Verb::Edit(arguments) => sessions::edit(&arguments),
        Verb::Names(arguments) => names::names(&arguments),
        Verb::Report(arguments) => report::report(&arguments),
        Verb::Trace(arguments) => trace::trace(&arguments),
        Verb::Explain(arguments) => simulate::explain(&arguments),
        Verb::Simulate(arguments) => simulate::simulate(&arguments),
        Verb::Sites(arguments) => sites::sites(&arguments),
        Verb::Discover(arguments) => discover::discover(&arguments),
        Verb::Copy(arguments) => cp::copy(&arguments),
        Verb::Cache(arguments) => cp::cache(&arguments),
        Verb::Login(arguments) => login::login(&arguments),
        Verb::Completions(arguments) => manual::completions(&arguments, grammar()),
        Verb::Complete(arguments) => manual::complete(&arguments, grammar()),
        Verb::Manual(arguments) => manual::manual(&arguments, grammar()),
        Verb::Agent { home, resume } => match resume.as_slice() {
            [job, subjob] => agent(|_| {
                let subjob = subjob.parse().unwrap_or(u32::MAX);
                isthmus_agent::run_successor(job, subjob, std::io::stdin(), &mut std::io::stdout())
            }),
            _ => agent(|binary| isthmus_agent::run(binary, home)),
        },
        Verb::Reach { destinations } => run::carry::check(&destinations),
        Verb::TakeUp(arguments) => successor::take_up(&arguments),
        Verb::Spawned => run::spawned(),
        Verb::Relay => agent(|_| relay::serve()),
        Verb::Service => agent(|_| isthmus_discovery::serve()),
        Verb::Gateway => agent(|_| isthmus_gateway::run()),
        Verb::Node { words } => agent(|binary| isthmus_agent::run_node(binary, &words)),
    }
}

/// A mistake in the words, or what was asked for: help, or the version.
fn unparsed(error: &clap::Error, words: &[std::ffi::OsString], command: &clap::Command) -> ExitCode {
    if error.use_stderr() {
        return match usage::mistake(error, words, command) {
            Some(mistake) => diagnostic::refuse(&mistake),
            None => {
                complain(error.render().to_string().trim_end());
                ExitCode::from(diagnostic::STATUS_USAGE)
            }
        };
    }
    let text = error.render();
    let text = match diagnostic::paint(&std::io::stdout()) {
        Paint::Colours => text.ansi().to_string(),
        Paint::Plain => text.to_string(),
    };
    put(match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 => help::wrapped(&text, usize::from(size.ws_col)),
        _ => text,
    }
    .as_bytes());
    ExitCode::SUCCESS
}

fn agent(serve: impl FnOnce(PathBuf) -> std::io::Result<()>) -> ExitCode {
    let result = std::env::current_exe().and_then(serve);
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("isthmus agent: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// A line for the user's programs.
pub(crate) fn print(text: &str) {
    put(format!("{}\n", word::show(text)).as_bytes());
}

/// Bytes for the user's programs. False: nobody reads them any more, or they have no place.
pub(crate) fn put(bytes: &[u8]) -> bool {
    use std::io::Write;
    let mut output = std::io::stdout();
    let written = inherited::output().and_then(|()| output.write_all(bytes));
    match written.and_then(|()| output.flush()) {
        Ok(()) => true,
        // Whoever reads has read enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => false,
        Err(error) => {
            if !OUTPUT_LOST.swap(true, Ordering::Relaxed) {
                complain(&format!("isthmus: error: cannot write to standard output: {error}"));
            }
            false
        }
    }
}

/// A line for the user.
pub(crate) fn complain(text: &str) {
    use std::io::Write;
    let text = diagnostic::harmless(&word::show(&word::without_numbers(text)));
    // One call of the system: nothing of other processes comes between.
    let end = if terminal::begins_behind() { "\n" } else { "" };
    let _ = std::io::stderr().write_all(format!("{end}{}\n", diagnostic::cut(&text)).as_bytes());
}
