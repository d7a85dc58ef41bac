// SPDX-License-Identifier: Apache-2.0
//! `isthmus names`: names that programs have published for their ports.

use clap::Args;
use isthmus_launch::session::Entry;
use isthmus_wire::control::{Reply, Request};
use serde_json::json;
use std::process::ExitCode;

/// List published port names, and worlds that wait for parts
///
/// Names are those that programs on this machine have published (MPI_Publish_name). Worlds that wait for parts were
/// started with isthmus run --world.
#[derive(Args, Debug)]
pub(crate) struct Names {
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// A published name.
struct Row {
    name: String,
    scope: &'static str,
    job: String,
    port: String,
    since: Option<u64>,
}

/// `isthmus names`.
pub(crate) fn names(arguments: &Names) -> ExitCode {
    let rows = match rows() {
        Ok(rows) => rows,
        Err(error) => {
            crate::complain(&format!(
                "isthmus: error: the names of the user cannot be used: {error}"
            ));
            return ExitCode::FAILURE;
        }
    };
    if arguments.json {
        let rows = rows.iter().map(|row| {
            json!({
                "name": row.name, "scope": row.scope, "job": row.job, "port": row.port, "since_unix_seconds": row.since,
            })
        });
        crate::json::print("names", json!({ "names": rows.collect::<Vec<_>>() }));
    } else if rows.is_empty() {
        crate::complain("isthmus: no names are published on this machine");
    } else {
        print(&rows);
    }
    ExitCode::SUCCESS
}

/// Those for all jobs of the user, then those that running jobs have for themselves.
fn rows() -> std::io::Result<Vec<Row>> {
    let mut rows: Vec<Row> = isthmus_stage::names::all()?
        .into_iter()
        .map(|known| Row {
            name: known.name,
            scope: "user",
            job: own_name(&known.job),
            port: known.port,
            since: Some(known.since),
        })
        .collect();
    // Not the ticket: whoever reads it can take part.
    rows.extend(isthmus_stage::names::worlds()?.into_iter().map(|known| Row {
        name: known.name,
        scope: "world",
        job: "-".to_owned(),
        port: "-".to_owned(),
        since: Some(known.since),
    }));
    for entry in Entry::all().iter().filter(|entry| entry.lives) {
        // A job that ends meanwhile has no names any more.
        if let Ok(Reply::Names(names)) = isthmus_launch::request(entry, &Request::Names) {
            rows.extend(names.into_iter().map(|(name, port)| Row {
                name,
                scope: "job",
                job: entry.name.clone(),
                port,
                since: None,
            }));
        }
    }
    Ok(rows)
}

/// A job as other commands name it.
fn own_name(job: &str) -> String {
    job.strip_prefix("isthmus-").unwrap_or(job).to_owned()
}

fn print(rows: &[Row]) {
    let width = |column: fn(&Row) -> &str, least: usize| {
        let widths = rows
            .iter()
            .map(|row| isthmus_reach::one_line(column(row)).chars().count());
        widths.max().unwrap_or(0).max(least) + 2
    };
    let (name, job) = (width(|row| &row.name, 4), width(|row| &row.job, 3));
    crate::print(&format!("{:<name$}{:<7}{:<job$}PORT", "NAME", "SCOPE", "JOB"));
    for row in rows {
        let (shown, whose) = (isthmus_reach::one_line(&row.name), isthmus_reach::one_line(&row.job));
        let port = isthmus_reach::one_line(&row.port);
        crate::print(&format!("{shown:<name$}{:<7}{whose:<job$}{port}", row.scope));
    }
}
