// SPDX-License-Identifier: Apache-2.0
//! Jobs as RSL, in the layout of mpirun of MPICH-G2.

use super::write::{quoted, text};
use super::{INDEX, LAN};
use crate::contact;
use crate::model::{Job, Subjob};
use crate::naming::check_name;

/// A multi-request of subjobs of one program each with every subjob's index, so that MPICH-G2 would take it too.
pub(crate) fn write(job: &Job) -> String {
    let mut out = "+\n".to_owned();
    let shared = |lan: &str| job.subjobs().iter().filter(|s| s.lan == lan).count() > 1;
    for (number, (subjob, first)) in job.subjobs().iter().zip(job.first_ranks()).enumerate() {
        let lan = (subjob.lan != subjob.site || shared(&subjob.lan)).then_some(subjob.lan.as_str());
        out.push_str(&one(subjob, number, first, lan));
    }
    out
}

/// Whether the label is needed for a text that cannot be a name, so that the site gets its name from its contact.
pub(crate) fn label_is_taken(subjob: &Subjob) -> bool {
    subjob.request("label").is_some()
}

fn one(subjob: &Subjob, number: usize, first: u32, lan: Option<&str>) -> String {
    let asked = subjob.allocation.as_ref();
    let contact = contact::write(&subjob.contact, subjob.scheduler());
    let mut lines = vec![
        format!("resourceManagerContact={}", quoted(&contact)),
        format!("count={}", subjob.count),
    ];
    if !label_is_taken(subjob) {
        // The first rank, as mpirun of MPICH-G2 does, when the contact says the name already.
        let named = subjob.site == subjob.contact.to_string() || check_name("site", &subjob.site).is_err();
        let label = if named {
            format!("subjob {first}")
        } else {
            subjob.site.clone()
        };
        lines.push(format!("label={}", quoted(&label)));
    }
    let mut variables = format!("({INDEX} {number})");
    let own = subjob
        .environment
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in lan.map(|lan| (LAN, lan)).into_iter().chain(own) {
        variables.push_str(&format!("\n                ({} {})", text(name), text(value)));
    }
    lines.push(format!("environment={variables}"));
    let section = &subjob.sections[0];
    if !section.arguments.is_empty() {
        let arguments: Vec<String> = section.arguments.iter().map(|a| text(a)).collect();
        lines.push(format!("arguments={}", arguments.join(" ")));
    }
    lines.extend(subjob.directory.iter().map(|d| format!("directory={}", quoted(d))));
    lines.push(format!("executable={}", executable(subjob)));
    if let Some(asked) = asked {
        let texts = [("queue", &asked.queue), ("project", &asked.account)];
        lines.extend(
            texts
                .iter()
                .filter(|(_, t)| !t.is_empty())
                .map(|(n, t)| format!("{n}={}", text(t))),
        );
        let numbers = [("hostCount", asked.nodes), ("maxWallTime", asked.limit.div_ceil(60))];
        lines.extend(
            numbers
                .iter()
                .filter(|(name, n)| *n > 0 && subjob.request(name).is_none())
                .map(|(name, n)| format!("{name}={n}")),
        );
    }
    lines.extend(subjob.requests.iter().map(crate::attributes::Request::text));
    format!("( &({})\n)\n", lines.join(")\n   ("))
}

/// A program that the site gets from here is a file of the client's own server.
fn executable(subjob: &Subjob) -> String {
    let program = &subjob.sections[0].program;
    let path = program
        .any
        .as_deref()
        .or_else(|| program.by_architecture.values().next().map(String::as_str));
    let path = path.unwrap_or_default();
    if subjob.stage && !path.contains("://") {
        format!("$(GLOBUSRUN_GASS_URL) # {}", quoted(path))
    } else {
        quoted(path)
    }
}
