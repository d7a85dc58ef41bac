// SPDX-License-Identifier: Apache-2.0
//! From the words of `isthmus run` to a job.

use super::arguments::Run;
use super::{beside, bound, places};
use crate::discover;
use crate::job::{self, Source};
use crate::reach;
use crate::variables::variable;
use isthmus_job::forms::Described;
use isthmus_job::sites;
use isthmus_job::transfer::{Input, Pattern, Transfers, parse_shared};
use isthmus_job::{JobError, JobErrors, Program, Subjob};
use std::path::Path;

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
    arguments.source.refuse_definitions("no RSL is given")?;
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
