// SPDX-License-Identifier: Apache-2.0
//! The command line and what each verb does.

mod events;
mod privilege;
mod run;
mod shape;
mod up;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use isthmus_testbed::{CheckPlan, Client, Error, Reply, Request, check, default_root, running, sweep};

/// Hosts as namespaces, joined by an emulated wide-area network.
#[derive(Debug, Parser)]
#[command(
    name = "isthmus-testbed",
    version,
    about,
    after_help = "\
Examples:
  isthmus-testbed run --sites 2x1 --rtt 40ms --rate 200mbit -- ssh b1 hostname
  isthmus-testbed up --sites 3x2 && isthmus-testbed exec a1 -- bash; isthmus-testbed down
  isthmus-testbed cut a b        from inside a command that `run` started, or after `up`

Hosts are named after their site: a1, a2, b1 ...; each has its own HOME, and ssh reaches every other by name."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Build a testbed, run a command on its first host, take everything down.
    Run(run::RunArguments),
    /// Build a testbed that stays until `down`.
    Up(up::UpArguments),
    /// The process behind `up`.
    #[command(hide = true)]
    Serve(up::UpArguments),
    /// Run a command on a host of a testbed that is up.
    Exec {
        #[command(flatten)]
        which: Which,
        /// The host, for example b1.
        host: String,
        /// The command and its arguments.
        #[arg(required = true, last = true)]
        command: Vec<String>,
    },
    /// Cut the link between two sites: packets vanish silently.
    Cut(Between),
    /// Restore a link that was cut.
    Restore(Between),
    /// Change the link between two sites while things run.
    Set {
        #[command(flatten)]
        between: Between,
        /// The new round trip: 80ms.
        #[arg(long, value_name = "TIME")]
        rtt: Option<String>,
        /// The new rate: 50mbit, unlimited.
        #[arg(long)]
        rate: Option<String>,
    },
    /// Say what is up and what crossed the links.
    Status {
        #[command(flatten)]
        which: Which,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// End a testbed.
    Down {
        #[command(flatten)]
        which: Which,
        /// End all testbeds of this user and remove what dead ones left.
        #[arg(long)]
        all: bool,
    },
    /// Measure how accurate the emulation is on this machine.
    Check {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args, Debug)]
struct Which {
    /// Name of the testbed; needed only when there are several.
    #[arg(long)]
    name: Option<String>,
}

#[derive(Args, Debug)]
struct Between {
    #[command(flatten)]
    which: Which,
    /// One site.
    a: String,
    /// The other site.
    b: String,
}

/// Does what the command line says; the code is that of the command run, where there is one.
pub(crate) fn execute(arguments: Arguments) -> Result<ExitCode, Error> {
    match arguments.verb {
        Verb::Run(arguments) => {
            privilege::ensure()?;
            run::run(&arguments)
        }
        Verb::Up(arguments) => up::up(&arguments),
        Verb::Serve(arguments) => {
            privilege::ensure()?;
            up::serve(&arguments)
        }
        Verb::Exec { which, host, command } => {
            let client = client(&which)?;
            privilege::join(client.description().server)?;
            run::exec(&client, &host, &command)
        }
        Verb::Cut(between) => ask(&between.which, &Request::Cut(between.a, between.b)),
        Verb::Restore(between) => ask(&between.which, &Request::Restore(between.a, between.b)),
        Verb::Set { between, rtt, rate } => {
            let request = Request::Set {
                between: (between.a, between.b),
                round_trip: rtt,
                rate,
            };
            ask(&between.which, &request)
        }
        Verb::Status { which, json } => status(&which, json),
        Verb::Down { which, all } => down(&which, all),
        Verb::Check { json } => {
            privilege::ensure()?;
            measure(json)
        }
    }
}

/// The testbed that is meant: the named one, the one around this process, or the only one.
fn client(which: &Which) -> Result<Client, Error> {
    if let Some(name) = &which.name {
        return Client::open(&default_root().join(name));
    }
    if let Some(state) = isthmus_settings::TESTBED.read(std::env::var_os) {
        return Client::open(&state);
    }
    let mut names = running(&default_root());
    match (names.pop(), names.is_empty()) {
        (Some(name), true) => Client::open(&default_root().join(name)),
        (Some(name), false) => Err(Error::Unknown {
            kind: "testbed",
            name: String::new(),
            known: format!("several, choose with --name: {name}, {}", names.join(", ")),
        }),
        (None, _) => Err(Error::Unknown {
            kind: "testbed",
            name: "default".to_owned(),
            known: "none; make one with `isthmus-testbed up`".to_owned(),
        }),
    }
}

fn ask(which: &Which, request: &Request) -> Result<ExitCode, Error> {
    client(which)?.ask(request)?;
    Ok(ExitCode::SUCCESS)
}

fn status(which: &Which, json: bool) -> Result<ExitCode, Error> {
    let client = client(which)?;
    let Reply::Report(report) = client.ask(&Request::Report)? else {
        return Err(Error::System {
            doing: "ask the testbed".to_owned(),
            source: std::io::Error::other("an answer to another question"),
        });
    };
    let description = client.description();
    if json {
        println!(
            "{}",
            serde_json::json!({ "description": description, "report": report })
        );
        return Ok(ExitCode::SUCCESS);
    }
    for host in &description.hosts {
        println!(
            "{:<8} {:<12} site {}, machine {}",
            host.name, host.reached, host.site, host.machine
        );
    }
    println!("{report}");
    for limit in &description.limits {
        println!("note: {limit}");
    }
    Ok(ExitCode::SUCCESS)
}

fn down(which: &Which, all: bool) -> Result<ExitCode, Error> {
    let root = default_root();
    if !all {
        let client = client(which)?;
        client.ask(&Request::Down)?;
        up::await_end(client.description().server);
        return Ok(ExitCode::SUCCESS);
    }
    for name in running(&root) {
        let client = Client::open(&root.join(name))?;
        client.ask(&Request::Down)?;
        up::await_end(client.description().server);
    }
    sweep(&root)?;
    // The root itself goes when nothing is left in it.
    let _ = std::fs::remove_dir(&root);
    Ok(ExitCode::SUCCESS)
}

fn measure(json: bool) -> Result<ExitCode, Error> {
    let rows = check(&CheckPlan::default())?;
    if json {
        println!("{}", serde_json::json!(rows));
    } else {
        println!("{:<28}{:>10}{:>12}{:>12}", "what", "asked", "measured", "tolerance");
        for row in &rows {
            let verdict = if row.good() { "ok" } else { "OFF" };
            let distrust = row
                .distrust
                .as_deref()
                .map(|why| format!(" (not to be trusted: {why})"))
                .unwrap_or_default();
            println!(
                "{:<28}{:>10}{:>12.3}{:>12.3}  {verdict}{distrust}",
                row.what, row.asked, row.got, row.tolerance
            );
        }
    }
    Ok(if rows.iter().all(|row| row.good()) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
