// SPDX-License-Identifier: Apache-2.0
//! `job.toml`.
//!
#![doc = concat!("```toml\n", include_str!("document/example.toml"), "```")]

use crate::allocation::FORK;
use crate::asked;
use crate::attributes::{self, Content, Datum, Fate, Operator, Request, Shape};
use crate::catalogue::Catalogue;
use crate::error::{JobError, JobErrors};
use crate::forms::rsl;
use crate::forms::rsl::syntax::Spec;
use crate::links;
use crate::model::{Contact, Job, Program, Subjob};
use crate::naming::JobName;
use crate::network;
use crate::source::{Source, Table};
use crate::terms;
use crate::transfer::{Input, Pattern, Transfers, parse_shared};
use isthmus_wire::grid::Scheduler;
use toml_edit::Item;

pub use crate::source::MAX_BYTES;

mod section;

/// A job file with everything that it can say.
pub const EXAMPLE: &str = include_str!("document/example.toml");

const TOP_KEYS: [&str; 26] = [
    "arguments",
    "directory",
    "environment",
    "files",
    "inputs",
    "level",
    "link",
    "name",
    "need",
    "on_loss",
    "outputs",
    "process",
    "program",
    "requests",
    "results",
    "setup",
    "share",
    "stage",
    "start",
    "start_timeout",
    "stderr",
    "stdin",
    "stdout",
    "subjob",
    "substitutes",
    "world",
];
const SUBJOB_KEYS: [&str; 43] = [
    "account",
    "address",
    "appnum",
    "arguments",
    "bind_each",
    "bind_to",
    "contact",
    "count",
    "directives",
    "directory",
    "environment",
    "exclusive",
    "inputs",
    "lan",
    "limit",
    "map_by",
    "map_each",
    "mpi",
    "need",
    "nodes",
    "on_loss",
    "outputs",
    "path",
    "ports",
    "program",
    "queue",
    "report_bindings",
    "requests",
    "results",
    "scheduler",
    "section",
    "setup",
    "share",
    "site",
    "stage",
    "start",
    "start_timeout",
    "stderr",
    "stdin",
    "stdout",
    "substitutes",
    "umask",
    "world",
];

/// Reads a job file; `file` is its name for messages. What sites have whose schedulers it does not name says
/// `catalogue`.
pub fn parse(text: &str, file: &str, catalogue: Option<&Catalogue>) -> Result<Job, JobErrors> {
    let source = Source::new(text, file);
    let document = source.read("job file")?;
    let mut reader = Reader {
        catalogue,
        errors: JobErrors::default(),
    };
    let job = reader.job(&Table::top(source, &document));
    reader.errors.or(job)
}

/// What may stand at the top and in a subjob.
#[derive(Clone, Default)]
struct Common {
    program: Option<Program>,
    arguments: Option<Vec<String>>,
    environment: Vec<(String, String)>,
    directory: Option<String>,
    stage: Option<bool>,
    requests: Vec<Request>,
    setup: Vec<String>,
    files: Transfers,
}

/// Reads all of a job file, whatever is wrong with parts of it.
struct Reader<'c> {
    /// What is known of sites.
    catalogue: Option<&'c Catalogue>,
    /// What was found wrong.
    errors: JobErrors,
}

impl Reader<'_> {
    fn job(&mut self, top: &Table<'_>) -> Option<Job> {
        let below = |key: &str| {
            SUBJOB_KEYS
                .contains(&key)
                .then(|| format!("write {key} in each [[subjob]]"))
        };
        top.check_keys_and_places(&TOP_KEYS, "a job file", &below, &mut self.errors);
        let mut common = self.common(top, Common::default());
        if let Some(scope) = self.errors.take(file_scope(top)).flatten() {
            common.environment.insert(0, scope);
        }
        let name = self.errors.take(top.meaning("name", JobName::parse)).flatten();
        let tables = self.errors.take(subjob_tables(top))?;
        let mut subjobs: Vec<Subjob> = Vec::new();
        for table in tables {
            let Some(subjob) = self.subjob(&table, &common) else {
                continue;
            };
            if subjobs.iter().any(|s| s.site == subjob.site) {
                let error = JobError::new(format!("site '{}' is named twice", subjob.site));
                let hint = format!(
                    "give this one a name of its own and add contact = \"{}\"",
                    subjob.contact
                );
                self.errors.push(table.at_key("site", error.hint(hint)));
            }
            subjobs.push(subjob);
        }
        if !self.errors.is_empty() {
            return None;
        }
        let pins = self.errors.take(links::pins(top, |name| {
            let named = |s: &&Subjob| s.lan == name || s.site == name;
            subjobs.iter().find(named).map(|s| s.lan.clone())
        }))?;
        let job = Job::new(subjobs).map(|job| job.with_links(pins).called(name));
        self.errors.take(job.map_err(|error| JobError {
            problem: top.of_file(&error.problem).problem,
            ..error
        }))
    }

    fn subjob(&mut self, table: &Table<'_>, top: &Common) -> Option<Subjob> {
        let above = |key: &str| {
            TOP_KEYS
                .contains(&key)
                .then(|| format!("write {key} at the top of the file"))
        };
        table.check_keys_and_places(&SUBJOB_KEYS, "a subjob", &above, &mut self.errors);
        let common = self.common(table, top.clone());
        let lan = self.errors.take(table.text("lan")).flatten();
        let mpi = self.errors.take(table.text("mpi")).flatten();
        let Some(site) = self.errors.take(table.text("site"))? else {
            let error = JobError::new("this subjob lacks 'site'");
            self.errors
                .push(table.at(error.hint("add site = \"home\" or an ssh destination")));
            return None;
        };
        let above = section::Above {
            site: &site,
            program: common.program.as_ref(),
            arguments: common.arguments.as_deref().unwrap_or_default(),
            elsewhere: &|key| {
                let known = SUBJOB_KEYS.contains(&key) || TOP_KEYS.contains(&key);
                known.then(|| format!("{key} is the same for all programs of a subjob: write it in the [[subjob]]"))
            },
        };
        let run = section::read(table, &above, &mut self.errors);
        let usual = self.usual_scheduler(table, &site);
        let allocation = asked::read(table, &site, usual, &mut self.errors);
        let network = self.network(table, &site);
        let contact = self.errors.take(match table.meaning("contact", Contact::parse) {
            Ok(None) => table.point("site", Contact::parse(&site)),
            Ok(Some(contact)) => Ok(contact),
            Err(error) => Err(error),
        });
        let (sections, count) = run?;
        let mut subjob = Subjob {
            contact: contact?,
            count,
            lan: lan.unwrap_or_else(|| site.clone()),
            sections,
            environment: [common.environment, network].concat(),
            directory: common.directory,
            stage: common.stage.unwrap_or(true),
            requests: common.requests,
            setup: common.setup,
            files: common.files,
            allocation,
            forks: table.get("scheduler").and_then(Item::as_str) == Some(FORK),
            site,
        };
        if let Some(mpiexec) = mpi {
            attributes::ask_vendor(&mut subjob.requests, &mpiexec);
        }
        asked::of_requests(&mut subjob);
        Some(subjob)
    }

    /// The scheduler that a site is known to have, for a subjob that asks something of it.
    fn usual_scheduler(&self, table: &Table<'_>, site: &str) -> Option<Scheduler> {
        let contact = table.get("contact").and_then(Item::as_str).unwrap_or(site);
        self.catalogue.filter(|_| asked::is_any(table))?.scheduler(contact)
    }

    /// Keys that stand for variables of the environment.
    fn network(&mut self, table: &Table<'_>, site: &str) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for (key, _) in network::KEYS {
            let read = |value: &str| network::variables(site, key, value);
            let item = table.get(key);
            // Numbers and flags need no quotes where the key says that it is one.
            let plain = match key {
                "bind_each" | "map_each" => item.and_then(Item::as_integer).map(|number| number.to_string()),
                "report_bindings" => item.and_then(Item::as_bool).map(|flag| flag.to_string()),
                _ => None,
            };
            let meant = match plain {
                Some(plain) => table.point(key, read(&plain)).map(Some),
                None => table.meaning(key, read),
            };
            all.extend(self.errors.take(meant).flatten().flatten().into_iter().flatten());
        }
        all
    }

    fn common(&mut self, table: &Table<'_>, above: Common) -> Common {
        let mut environment = above.environment;
        let own = self.errors.take(table.texts_by_name("environment"));
        environment.extend(own.flatten().unwrap_or_default());
        let requests = self.requests(table, above.requests);
        let errors = &mut self.errors;
        let program = errors.take(section::program(table)).flatten();
        let arguments = errors.take(table.texts("arguments")).flatten();
        let directory = errors.take(table.text("directory")).flatten();
        let stage = errors.take(table.flag("stage")).flatten();
        let mut setup = above.setup;
        setup.extend(errors.take(table.texts("setup")).flatten().unwrap_or_default());
        Common {
            program: program.or(above.program),
            arguments: arguments.or(above.arguments),
            environment,
            directory: directory.or(above.directory),
            stage: stage.or(above.stage),
            requests,
            setup,
            files: self.transfers(table, above.files),
        }
    }

    /// What is asked of a subjob, here and at the top of the file: what stands here counts.
    fn requests(&mut self, table: &Table<'_>, above: Vec<Request>) -> Vec<Request> {
        let mut requests = self.errors.take(relations(table)).unwrap_or_default();
        for (key, _) in terms::KEYS {
            requests.extend(self.errors.take(term(table, key)).flatten());
        }
        let own: Vec<_> = requests.iter().map(|r| (r.attribute.name, r.operator)).collect();
        let others = above.into_iter();
        requests.extend(others.filter(|r| !own.contains(&(r.attribute.name, r.operator))));
        attributes::sort(&mut requests);
        requests
    }

    /// Files of a subjob replace those that stand at the top.
    fn transfers(&mut self, table: &Table<'_>, above: Transfers) -> Transfers {
        Transfers {
            inputs: self.meanings(table, "inputs", Input::parse).unwrap_or(above.inputs),
            outputs: self.meanings(table, "outputs", Pattern::parse).unwrap_or(above.outputs),
            results: self.errors.take(table.text("results")).flatten().or(above.results),
            shared: self.meanings(table, "share", parse_shared).unwrap_or(above.shared),
            ..Transfers::default()
        }
    }

    fn meanings<T>(
        &mut self,
        table: &Table<'_>,
        key: &str,
        read: impl Fn(&str) -> Result<T, JobError>,
    ) -> Option<Vec<T>> {
        let meant = self.errors.take(table.meanings(key, read)).flatten()?;
        Some(meant.into_iter().filter_map(|one| self.errors.take(one)).collect())
    }
}

fn subjob_tables<'t>(top: &Table<'t>) -> Result<Vec<Table<'t>>, JobError> {
    if !top.has("subjob") {
        let error = top.of_file("there is no [[subjob]]");
        return Err(error.hint("add at least: [[subjob]], site = \"home\", count = 4"));
    }
    top.tables("subjob")
}

/// What a name without a site means to MPI_File_open: one file of the job, or one of each site.
fn file_scope(top: &Table<'_>) -> Result<Option<(String, String)>, JobError> {
    top.meaning("files", |value| match value {
        "shared" | "local" => Ok((network::FILE_SCOPE.to_owned(), value.to_owned())),
        _ => Err(JobError::new(format!("files = '{value}' means nothing"))
            .hint("shared: one file for the whole job; local: each site has its own")),
    })
}

/// Relations of RSL about attributes that are kept.
fn relations(table: &Table<'_>) -> Result<Vec<Request>, JobError> {
    let meant = table.meanings("requests", |text| relation(text, table))?;
    meant.unwrap_or_default().into_iter().collect()
}

fn relation(text: &str, table: &Table<'_>) -> Result<Request, JobError> {
    let wrong = |why: &str| {
        JobError::new(format!("request '{}' {why}", crate::quoted::shown(text)))
            .hint("write for example \"min_memory >= 512\"; `isthmus job attributes` lists them")
    };
    let spec = rsl::evaluate(text, table.file(), &[]).map_err(|errors| {
        let first = errors.iter().next().map_or("", |e| e.problem.as_str());
        wrong(&format!("is not a relation: {first}"))
    })?;
    let Spec::Relation(relation) = spec else {
        return Err(wrong("is more than one relation"));
    };
    let attribute = attributes::find(&relation.attribute).filter(|a| !matches!(a.fate, Fate::Understood(_)));
    let attribute = attribute.ok_or_else(|| wrong("is about nothing that can be asked for so"))?;
    if let Fate::Refused(hint) = attribute.fate {
        return Err(wrong("cannot be met").hint(hint));
    }
    if matches!(attribute.fate, Fate::Obeyed(_)) && relation.operator != Operator::Equal {
        return Err(wrong("can only be set with '='"));
    }
    let request = attribute
        .request(relation.operator, &relation.values)
        .map_err(|(_, problem, _)| wrong(&format!("is wrong: {problem}")))?;
    let label = request.values[0].text().unwrap_or_default();
    if attribute.name == "label" && request.operator == Operator::Equal && rsl::label_says_nothing_more(label) {
        return Err(wrong("is the name of the site").hint(format!("write site = \"{label}\", and contact")));
    }
    Ok(request)
}

/// A key that stands for an attribute of RSL.
fn term(table: &Table<'_>, key: &str) -> Result<Option<Request>, JobError> {
    let (Some(item), Some(attribute)) = (table.get(key), terms::attribute(key)) else {
        return Ok(None);
    };
    let span = item.span().unwrap_or(0..0);
    let texts = match attribute.shape {
        Shape::Texts => table.texts(key)?,
        _ => table.text(key)?.map(|text| vec![text]),
    };
    let datum = |text: &String| {
        Ok(Datum {
            content: Content::Text(terms::value_of_attribute(key, text)?),
            span: span.clone(),
        })
    };
    let values: Result<Vec<Datum>, JobError> = texts.iter().flatten().map(datum).collect();
    let values = table.point(key, values)?;
    let request = attribute.request(Operator::Equal, &values);
    request.map(Some).map_err(|(_, problem, hint)| {
        let error = JobError::new(problem.replace(attribute.name, key));
        table.at_key(key, if hint.is_empty() { error } else { error.hint(hint) })
    })
}

#[cfg(test)]
mod tests;
