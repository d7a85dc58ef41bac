// SPDX-License-Identifier: Apache-2.0
//! `isthmus doctor`: whether jobs can run on these sites, by which paths, and what to change.

use clap::Args;
use isthmus_job::sites::{self, SiteSpec};
use isthmus_job::{Job, JobError, JobErrors, Program};
use isthmus_launch::{Examination, PathReport, Sighting, site_name};
use isthmus_topology::Measured;
use std::process::ExitCode;
use std::time::Duration;

use crate::examined::{as_json, is_well, tell};
use crate::reach;

/// Check whether jobs can run on sites, and how sites are connected
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  isthmus doctor lab.example.org cluster2
  isthmus doctor home lab=me@lab.example.org --json

Default: home and all sites in the sites file. This machine is always examined. Sites are written as for isthmus run --site. The exit status is 0 if all sites can be reached and connected with each other.")]
pub(crate) struct Doctor {
    /// Sites: `home`, or ssh destinations, each with options as for `isthmus run --site`
    #[arg(value_name = "SITE")]
    sites: Vec<String>,
    /// List every connection attempt and its result
    #[arg(short, long)]
    verbose: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// ssh client to use [default: $ISTHMUS_SSH or ssh]
    #[arg(long, value_name = "COMMAND")]
    ssh: Option<String>,
}

/// `isthmus doctor`.
pub(crate) fn doctor(arguments: &Doctor) -> ExitCode {
    let prepared = job(&arguments.sites).and_then(|job| {
        Ok((
            job,
            crate::run::plain_options(arguments.ssh.as_deref()).map_err(JobErrors::from)?,
        ))
    });
    let (job, options) = match prepared {
        Ok(prepared) => prepared,
        Err(errors) => return crate::diagnostic::refuse(&errors),
    };
    let found = match isthmus_launch::examine(&job, options) {
        Ok(mut found) => {
            believe(&mut found);
            found
        }
        Err(error) => {
            crate::complain(&format!("isthmus: error: cannot examine the sites: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let text = if arguments.json {
        crate::json::text("doctor", as_json(&found))
    } else {
        tell(&found, arguments.verbose)
    };
    crate::print(text.trim_end());
    if is_well(&found) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Links are told as the better evidence says, this examination's or that of earlier jobs and commands; jobs will go
/// by the same.
fn believe(found: &mut Examination) {
    let options = crate::links::options();
    let name = |name: &str| {
        let host = found
            .sites
            .iter()
            .find(|s| s.name == name)
            .and_then(|s| s.host.as_deref());
        site_name(name, host.unwrap_or_default())
    };
    // What goes through ssh says nothing about the link.
    let counts = |p: &&PathReport| !matches!(p.path, "ssh" | "none");
    let sighting = |p: &PathReport| Sighting {
        between: [name(&p.between.0), name(&p.between.1)],
        measured: Measured {
            latency: p
                .round_trip
                .and_then(|t| u64::try_from(t.as_nanos() / 2).ok())
                .filter(|l| *l > 0),
            rate: p.rate,
            ..Measured::default()
        },
    };
    let seen: Vec<Sighting> = found.paths.iter().filter(counts).map(sighting).collect();
    let (known, problem) = isthmus_launch::believe(&seen, &options);
    problem
        .into_iter()
        .for_each(|text| crate::diagnostic::note(&JobError::new(text)));
    let told = found.paths.iter_mut().filter(|p| counts(&&**p));
    for (path, known) in told.zip(known) {
        path.rate = known.rate.map(|r| r.value).or(path.rate);
        let trip = known.latency.map(|l| Duration::from_nanos(l.value.saturating_mul(2)));
        path.round_trip = trip.or(path.round_trip);
    }
}

fn job(names: &[String]) -> Result<Job, JobErrors> {
    let catalogue = reach::catalogue()?;
    let mut specs = reach::sites_or_all(&catalogue, names)
        .iter()
        .map(|s| SiteSpec::parse(s))
        .collect::<Result<Vec<_>, _>>()?;
    if !specs.iter().any(|s| s.contact == isthmus_job::Contact::Home) {
        specs.insert(0, SiteSpec::parse("home")?);
    }
    let job = sites::job_of_sites(&specs, None, &sites::template(Program::one("none"), Vec::new()))?;
    Ok(catalogue.complete(job)?)
}
