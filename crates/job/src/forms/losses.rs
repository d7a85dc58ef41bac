// SPDX-License-Identifier: Apache-2.0
//! What a form has no words for.

use super::described::Form;
use crate::contact;
use crate::forms::sites::name_apart;
use crate::links::Pins;
use crate::model::{Job, Subjob};

/// Everything of a job that would not come back if the form were read again. `several`: the names of subjobs of several
/// programs, which are subjobs of one program each in this job.
pub(super) fn of(form: Form, job: &Job, several: &[String]) -> Vec<String> {
    let mut lost = Vec::new();
    if !form.names_program() {
        lost.push(format!(
            "what to run: '{}' only says where; add the program to the command",
            form.name()
        ));
        if job.subjobs().windows(2).any(|pair| run(&pair[0]) != run(&pair[1])) {
            lost.push("that the subjobs differ in what they run, or how".to_owned());
        }
    }
    for site in several {
        lost.push(format!(
            "site '{site}': that its programs are in one subjob, and share the memory of its nodes"
        ));
    }
    if *job.links() != Pins::default() && form != Form::Toml {
        lost.push("what is said of links".to_owned());
    }
    if job.name().is_some() && form != Form::Toml {
        lost.push("the name of the job".to_owned());
    }
    let names = names(form, job);
    let lans = lans(form, job, &names);
    for ((subjob, name), lan) in job.subjobs().iter().zip(&names).zip(&lans) {
        let parts = parts(form, subjob, name, lan);
        if !parts.is_empty() {
            lost.push(format!("site '{}': {}", subjob.site, parts.join(", ")));
        }
    }
    let mut hosts: Vec<String> = job.subjobs().iter().map(|s| s.contact.to_string()).collect();
    hosts.sort();
    hosts.dedup();
    if matches!(form, Form::Mpich | Form::OpenMpi | Form::Slurm) && hosts.len() < job.subjobs().len() {
        lost.push("that several subjobs are on one host: they would become one".to_owned());
    }
    lost
}

/// What is the same for all subjobs where one program is named for all.
fn run(subjob: &Subjob) -> impl PartialEq + use<'_> {
    let Subjob {
        sections,
        environment,
        directory,
        stage,
        ..
    } = subjob;
    (sections, environment, directory, *stage)
}

/// The names that the sites would have after reading.
fn names(form: Form, job: &Job) -> Vec<String> {
    let mut subjobs = job.subjobs().to_vec();
    match form {
        Form::Toml | Form::Pacx => {}
        Form::Rsl => {
            for subjob in subjobs.iter_mut().filter(|s| super::rsl::job::label_is_taken(s)) {
                subjob.site = subjob.contact.to_string();
            }
            name_apart(&mut subjobs);
        }
        _ => {
            subjobs.iter_mut().for_each(|s| s.site = s.contact.to_string());
            name_apart(&mut subjobs);
        }
    }
    subjobs.into_iter().map(|s| s.site).collect()
}

/// The local networks that the sites would have after reading.
fn lans(form: Form, job: &Job, names: &[String]) -> Vec<String> {
    let subjobs = job.subjobs();
    match form {
        Form::Toml | Form::Rsl => subjobs.iter().map(|s| s.lan.clone()).collect(),
        Form::Pacx | Form::Machines => names.to_vec(),
        Form::Mpich | Form::OpenMpi => subjobs.iter().map(|s| s.contact.to_string()).collect(),
        Form::Slurm => vec![subjobs[0].lan.clone(); subjobs.len()],
    }
}

fn parts(form: Form, subjob: &Subjob, name: &str, lan: &str) -> Vec<String> {
    let mut parts = Vec::new();
    if subjob.site != *name {
        parts.push(format!("its name ('{name}' instead)"));
    }
    if !keeps_contact(form, subjob) {
        parts.push(format!("its contact '{}'", subjob.contact));
    }
    if subjob.lan != *lan {
        parts.push(format!("its local network '{}' ('{lan}' instead)", subjob.lan));
    }
    if form != Form::Toml && !(subjob.files.is_empty() && subjob.setup.is_empty()) {
        parts.push("its inputs, outputs and set-up commands".to_owned());
    }
    if form != Form::Toml && !subjob.files.shared.is_empty() {
        parts.push(format!("what it shares ({})", subjob.files.shared.join(", ")));
    }
    if form == Form::Rsl {
        rsl(subjob, &mut parts);
    }
    if form.names_program() {
        return parts;
    }
    if subjob.scheduler().is_some() && form != Form::Machines {
        parts.push("its scheduler and what is asked of it".to_owned());
    } else if subjob
        .allocation
        .as_ref()
        .is_some_and(|a| *a != isthmus_wire::grid::Allocation::new(a.scheduler))
    {
        parts.push("what is asked of its scheduler".to_owned());
    }
    parts.extend(subjob.requests.iter().map(crate::attributes::Request::text));
    parts
}

/// Whether the form takes the contact for what it is: names of hosts may have signs that mean something to it.
fn keeps_contact(form: Form, subjob: &Subjob) -> bool {
    let host = super::hosts::host(&subjob.contact);
    match form {
        Form::Toml => true,
        Form::Rsl | Form::Machines => {
            let text = contact::write(&subjob.contact, None);
            let comment = form == Form::Machines && text.contains(['#', '"']);
            !comment && contact::parse(&text).is_ok_and(|gram| gram.contact == subjob.contact)
        }
        Form::Pacx => !subjob.site.starts_with('#'),
        Form::Mpich | Form::OpenMpi => !host.contains(['#', ':', '=', '"', ',']),
        Form::Slurm => !host.contains(['[', ']', ',', '=']),
    }
}

fn rsl(subjob: &Subjob, parts: &mut Vec<String>) {
    let section = &subjob.sections[0];
    if section.appnum != 0 {
        parts.push(format!("its number among the programs ({})", section.appnum));
    }
    let others: Vec<&str> = section.program.by_architecture.keys().map(String::as_str).collect();
    if !others.is_empty() {
        parts.push(format!("programs by architecture ({})", others.join(", ")));
    }
    let Some(asked) = &subjob.allocation else { return };
    if asked.exclusive {
        parts.push("exclusive nodes".to_owned());
    }
    if asked.limit % 60 != 0 {
        parts.push(format!(
            "the seconds of its limit of {} s, rounded up to minutes",
            asked.limit
        ));
    }
    if !asked.directives.is_empty() {
        parts.push(format!("directives ({})", asked.directives.join(" ")));
    }
}
