// SPDX-License-Identifier: Apache-2.0
//! What a job would start where, for `--dry-run`: as text, as JSON.

use isthmus_job::{Contact, Job, Program, Subjob, rsl};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What would be started where.
pub(crate) fn text(job: &Job) -> String {
    let mut lans: Vec<&str> = job.subjobs().iter().map(|s| s.lan.as_str()).collect();
    lans.sort_unstable();
    lans.dedup();
    let number = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let mut text = [
        format!(
            "{} process{}",
            job.processes(),
            if job.processes() == 1 { "" } else { "es" }
        ),
        number(job.subjobs().len(), "subjob"),
        number(lans.len(), "local network"),
    ]
    .join(", ");
    for (subjob, first) in job.subjobs().iter().zip(job.first_ranks()) {
        let ranks = ranks(first, subjob.count);
        text.push_str(&format!("\n\n{ranks} on site '{}'", subjob.site));
        for (name, value) in rows(subjob, first) {
            text.push_str(&format!("\n  {name:<15}{value}"));
        }
    }
    text
}

fn ranks(first: u32, count: u32) -> String {
    match count {
        1 => format!("rank {first}"),
        count => format!("ranks {first} to {}", first + count - 1),
    }
}

fn programs(program: &Program) -> String {
    let programs = program.any.iter().cloned();
    let others = program.by_architecture.iter().map(|(a, path)| format!("{path} ({a})"));
    programs.chain(others).collect::<Vec<_>>().join(", ")
}

fn variables(environment: &[(String, String)]) -> impl Iterator<Item = (&'static str, String)> {
    environment.iter().map(|(n, v)| ("environment", format!("{n}={v}")))
}

fn rows(subjob: &Subjob, first: u32) -> Vec<(&'static str, String)> {
    let reached = match &subjob.contact {
        Contact::Home => "this machine".to_owned(),
        Contact::Ssh(to) => format!("ssh {to}"),
        Contact::Part(_) => "its own launcher".to_owned(),
    };
    let from = match (&subjob.contact, subjob.stage) {
        (Contact::Home, _) => "",
        (_, true) => ", brought from here",
        (_, false) => ", the site's own",
    };
    let mut rows = vec![("contact", reached), ("local network", subjob.lan.clone())];
    for (section, count) in subjob.sections() {
        let several = subjob.sections.len() > 1;
        let ranks = several.then(|| ranks(first + section.first, count));
        let ranks = ranks.map(|ranks| format!(", {ranks}")).unwrap_or_default();
        rows.push(("program", format!("{}{from}{ranks}", programs(&section.program))));
        rows.extend((!section.arguments.is_empty()).then(|| ("arguments", rsl::words(&section.arguments))));
        rows.extend(section.directory.iter().map(|d| ("directory", d.clone())));
        rows.extend(variables(&section.environment));
    }
    rows.extend(subjob.directory.iter().map(|d| ("directory", d.clone())));
    rows.extend(variables(&subjob.environment));
    rows.extend(subjob.scheduler().map(|word| ("scheduler", word.to_owned())));
    if let Some(asked) = &subjob.allocation {
        let texts = [("queue", &asked.queue), ("account", &asked.account)];
        rows.extend(
            texts
                .iter()
                .filter(|(_, t)| !t.is_empty())
                .map(|(n, t)| (*n, (*t).clone())),
        );
        let numbers = [
            ("limit", format!("{} s", asked.limit), asked.limit),
            ("nodes", asked.nodes.to_string(), asked.nodes),
        ];
        rows.extend(
            numbers
                .into_iter()
                .filter(|(_, _, n)| *n > 0)
                .map(|(name, text, _)| (name, text)),
        );
        if asked.exclusive {
            rows.push(("exclusive", "yes".to_owned()));
        }
        rows.extend(asked.directives.iter().map(|d| ("directive", d.clone())));
    }
    rows.extend(subjob.setup.iter().map(|line| ("set-up", line.clone())));
    rows.extend(subjob.files.inputs.iter().map(|i| ("input", i.to_string())));
    rows.extend(subjob.files.outputs.iter().map(|o| ("output", o.text().to_owned())));
    rows.extend(subjob.files.shared.iter().map(|path| ("share", path.clone())));
    rows.extend(subjob.requests.iter().map(|r| ("request", r.text())));
    rows
}

/// The same as JSON.
pub(crate) fn json(job: &Job) -> Value {
    let subjobs = job.subjobs().iter().zip(job.first_ranks()).map(|(subjob, first)| {
        let asked = subjob.allocation.as_ref();
        let sections = subjob.sections().map(|(section, count)| {
            json!({
                "first_rank": first + section.first,
                "processes": count,
                "appnum": section.appnum,
                "programs": section.program.paths().collect::<Vec<_>>(),
                "arguments": section.arguments,
                "directory": section.directory,
                "environment": section.environment.iter().cloned().collect::<BTreeMap<_, _>>(),
            })
        });
        let text = |t: Option<&String>| t.filter(|t| !t.is_empty()).cloned();
        let number = |n: Option<u32>| n.filter(|n| *n > 0);
        json!({
            "site": subjob.site,
            "contact": subjob.contact.to_string(),
            "lan": subjob.lan,
            "first_rank": first,
            "processes": subjob.count,
            "sections": sections.collect::<Vec<_>>(),
            "staged": subjob.contact != Contact::Home && subjob.stage,
            "directory": subjob.directory,
            "environment": subjob.environment.iter().cloned().collect::<BTreeMap<_, _>>(),
            "scheduler": subjob.scheduler(),
            "queue": text(asked.map(|a| &a.queue)),
            "account": text(asked.map(|a| &a.account)),
            "limit_seconds": number(asked.map(|a| a.limit)),
            "nodes": number(asked.map(|a| a.nodes)),
            "exclusive": asked.is_some_and(|a| a.exclusive),
            "directives": asked.map(|a| a.directives.clone()).unwrap_or_default(),
            "setup": subjob.setup,
            "inputs": subjob.files.inputs.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "outputs": subjob.files.outputs.iter().map(|o| o.text().to_owned()).collect::<Vec<_>>(),
            "share": subjob.files.shared,
            "requests": subjob.requests.iter().map(|r| r.text()).collect::<Vec<_>>(),
        })
    });
    json!({ "processes": job.processes(), "subjobs": subjobs.collect::<Vec<_>>() })
}
