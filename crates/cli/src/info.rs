// SPDX-License-Identifier: Apache-2.0
//! `isthmus info`: what this Isthmus is and can do.

use crate::json;
use clap::Args;
use isthmus_abi::{FUNCTIONS, Function};
use isthmus_sched::Verified;
use isthmus_settings::SETTINGS;
use isthmus_wire::grid::Scheduler;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::ExitCode;

/// Show the version, MPI functions and settings of this installation
#[derive(Args, Debug)]
pub(crate) struct Info {
    /// List the MPI functions and whether each is implemented
    #[arg(long)]
    functions: bool,
    /// List the settings (environment variables)
    #[arg(long)]
    settings: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// `isthmus info`.
pub(crate) fn info(arguments: &Info) -> ExitCode {
    if arguments.json {
        let command = match (arguments.functions, arguments.settings) {
            (true, _) => "info --functions",
            (false, true) => "info --settings",
            (false, false) => "info",
        };
        json::print(command, as_json(arguments));
        return ExitCode::SUCCESS;
    }
    if arguments.functions {
        functions();
    }
    if arguments.settings {
        settings();
    }
    if !arguments.functions && !arguments.settings {
        summary();
    }
    ExitCode::SUCCESS
}

fn as_json(arguments: &Info) -> Value {
    let mut all = json!({});
    if arguments.functions {
        let list = FUNCTIONS.iter().map(
            |f| json!({ "name": f.name, "chapter": f.chapter, "since": f.since, "implemented": f.implemented, "state": state(f) }),
        );
        all["functions"] = list.collect();
        all["beyond_mpi"] = beyond_mpi().map(|(function, _)| function).collect();
    }
    if arguments.settings {
        let list = SETTINGS.iter().filter(|s| s.scope != "internal").map(|s| {
            json!({ "name": s.name, "unit": s.unit, "scope": s.scope, "default": s.default, "help": s.help, "reason": s.reason })
        });
        all["settings"] = list.collect();
    }
    if !arguments.functions && !arguments.settings {
        let implemented = FUNCTIONS.iter().filter(|f| f.implemented).count();
        let live = |s: &Scheduler| matches!(isthmus_sched::adaptor(*s).verified(), Verified::Live);
        let schedulers = Scheduler::ALL
            .iter()
            .map(|s| json!({ "name": s.keyword(), "verified": live(s) }));
        all = json!({
            "isthmus": env!("CARGO_PKG_VERSION"),
            "system": std::env::consts::OS,
            "architecture": std::env::consts::ARCH,
            "functions": { "all": FUNCTIONS.len(), "implemented": implemented },
            "library": mpi_library(),
            "schedulers": schedulers.collect::<Vec<_>>(),
            "adaptors": known_adaptors(),
        });
    }
    all
}

/// Where the MPI library is.
fn mpi_library() -> Option<String> {
    let binary = std::env::current_exe().ok()?;
    crate::run::library(&binary).map(|l| l.display().to_string())
}

fn summary() {
    let (os, architecture) = (std::env::consts::OS, std::env::consts::ARCH);
    let implemented = FUNCTIONS.iter().filter(|f| f.implemented).count();
    crate::print(&format!(
        "isthmus {} for {os} on {architecture}",
        env!("CARGO_PKG_VERSION")
    ));
    crate::print(&format!(
        "MPI functions: {} in the ABI, {implemented} implemented",
        FUNCTIONS.len()
    ));
    let library = mpi_library().unwrap_or_else(|| "not found".to_owned());
    crate::print(&format!("MPI library: {library}"));
    for line in lacking() {
        crate::print(&line);
    }
    crate::print(&format!("schedulers: {}", schedulers()));
    crate::print(&format!("adaptors to other MPIs: {}", adaptors()));
}

/// What the table of functions cannot say.
const IN_PART: [&str; 3] = [
    "MPI_Comm_spawn where only ssh reaches the new processes, on nodes of a scheduler or in programs without a launcher",
    "MPI_Comm_connect where processes of the two jobs reach each other neither directly nor through gateways or a host (--meet)",
    "MPIX_Comm_revoke on a machine's own MPI in jobs that end with a loss",
];

/// Lines about what is not there.
fn lacking() -> Vec<String> {
    let missing: Vec<&str> = FUNCTIONS.iter().filter(|f| !f.implemented).map(|f| f.name).collect();
    let named = (!missing.is_empty()).then(|| format!("not implemented yet: {}", missing.join(", ")));
    let parts = IN_PART.map(|what| format!("does not work yet: {what}"));
    named.into_iter().chain(parts).collect()
}

/// The MPIs of this machine that subjobs can run on top of without a compiler at hand.
fn known_adaptors() -> Vec<String> {
    let known = crate::adaptor::cache().map(|directory| isthmus_vendor::known(&directory));
    let name = |(path, mpicc): (std::path::PathBuf, String)| match mpicc.is_empty() {
        true => path.display().to_string(),
        false => mpicc,
    };
    known.unwrap_or_default().into_iter().map(name).collect()
}

/// The same in one line.
fn adaptors() -> String {
    let names = known_adaptors();
    if names.is_empty() {
        return "none yet; made when a subjob asks for one, or by isthmus adaptor build".to_owned();
    }
    names.join(", ")
}

/// Every way to start processes at a site, and whether it has been tried with the real thing.
fn schedulers() -> String {
    let mut all = vec!["fork".to_owned()];
    all.extend(
        Scheduler::ALL.map(|scheduler| match isthmus_sched::adaptor(scheduler).verified() {
            Verified::Live => scheduler.keyword().to_owned(),
            Verified::Recorded => format!("{} (not verified against a live system)", scheduler.keyword()),
        }),
    );
    all.join(", ")
}

fn functions() {
    let mut text = String::new();
    for function in FUNCTIONS {
        let state = state(function);
        text.push_str(&format!(
            "{state:<6}{:<40}{:<16}{}\n",
            function.name, function.chapter, function.since
        ));
    }
    for (function, header) in beyond_mpi() {
        text.push_str(&format!("{:<6}{function:<40}{header}\n", "yes"));
    }
    crate::print(text.trim_end());
    crate::print("");
    for chapter in FUNCTIONS.iter().map(|f| f.chapter).collect::<BTreeSet<_>>() {
        crate::print(&of_chapter(chapter));
    }
    for (header, _, _) in BESIDE {
        let count = beyond_mpi().filter(|(_, of)| *of == header).count();
        crate::print(&format!("{header:<16}{count} functions beyond MPI"));
    }
}

/// Headers beside mpi.h, with what declarations of functions begin with, and their text.
const BESIDE: [(&str, &str, &str); 2] = [
    ("mpi-ext.h", "int MPIX_", include_str!("../../../include/mpi-ext.h")),
    ("isthmus.h", "int isthmus_", include_str!("../../../include/isthmus.h")),
];

/// Functions beside those of MPI, as their headers declare them, each with its header.
fn beyond_mpi() -> impl Iterator<Item = (&'static str, &'static str)> {
    BESIDE.into_iter().flat_map(|(header, begins, text)| {
        let declared = text.lines().filter(move |line| line.starts_with(begins));
        declared.filter_map(move |line| Some((line.strip_prefix("int ")?.split('(').next()?, header)))
    })
}

/// What there is of a chapter, in one line.
fn of_chapter(chapter: &str) -> String {
    let count = |wanted: &str| {
        let of_chapter = FUNCTIONS.iter().filter(|f| f.chapter == chapter);
        of_chapter.filter(|f| state(f) == wanted).count()
    };
    let (yes, no, later) = (count("yes"), count("no"), count("later"));
    let waits = match later {
        0 => String::new(),
        _ => format!(", {later} that come later (starting processes, publishing names)"),
    };
    format!("{chapter:<16}{yes} of {} implemented{waits}", yes + no + later)
}

/// `later`: part of a chapter that is not begun, and says so when it is called.
fn state(function: &Function) -> &'static str {
    let later = function.chapter == "dynamic";
    match function.implemented {
        true => "yes",
        false if later => "later",
        false => "no",
    }
}

fn settings() {
    for setting in SETTINGS.iter().filter(|s| s.scope != "internal") {
        crate::print(&format!(
            "{} ({}; {}) [default: {}]",
            setting.name, setting.unit, setting.scope, setting.default
        ));
        crate::print(&format!("    {}; {}", setting.help, setting.reason));
    }
}
