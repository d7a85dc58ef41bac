// SPDX-License-Identifier: Apache-2.0
//! `job.toml`.
//!
#![doc = concat!("```toml\n", include_str!("document/example.toml"), "```")]

use crate::allocation::{self, FORK};
use crate::attributes::{self, Content, Datum, Fate, Request, Shape};
use crate::catalogue::Catalogue;
use crate::error::{JobError, JobErrors};
use crate::model::{Contact, Job, Program, Subjob, check_count, to_count};
use crate::naming::JobName;
use crate::network;
use crate::rsl;
use crate::rsl::syntax::{Operator, Spec};
use crate::sites;
use crate::terms;
use crate::transfer::{Input, Pattern, Transfers};
use isthmus_settings::nearest;
use isthmus_wire::grid::{Allocation, Scheduler};
use std::ops::Range;
use toml_edit::{ImDocument, Item, TableLike, Value};

/// A job file with everything that it can say.
pub const EXAMPLE: &str = include_str!("document/example.toml");
/// Largest job file, bytes.
pub const MAX_BYTES: usize = 4 << 20;

const TOP_KEYS: [&str; 24] = [
    "arguments",
    "directory",
    "environment",
    "files",
    "inputs",
    "level",
    "link",
    "name",
    "need",
    "outputs",
    "process",
    "program",
    "requests",
    "results",
    "setup",
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
/// What is asked of a scheduler.
const ASKED: [&str; 6] = ["queue", "account", "limit", "nodes", "exclusive", "directives"];
const SUBJOB_KEYS: [&str; 36] = [
    "account",
    "address",
    "appnum",
    "arguments",
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
    "mpi",
    "need",
    "nodes",
    "outputs",
    "path",
    "ports",
    "program",
    "queue",
    "requests",
    "results",
    "scheduler",
    "setup",
    "site",
    "stage",
    "start",
    "start_timeout",
    "stderr",
    "stdin",
    "stdout",
    "substitutes",
    "world",
];

/// Reads a job file; `file` is its name for messages. What sites have whose schedulers it does not name says
/// `catalogue`.
pub fn parse(text: &str, file: &str, catalogue: Option<&Catalogue>) -> Result<Job, JobErrors> {
    let source = Document {
        catalogue,
        ..Document::new(text, file)
    };
    let document = source.read("job file")?;
    let mut errors = JobErrors::default();
    let job = source.job(document.as_table(), &mut errors);
    errors.or(job)
}

/// A file of the user: what errors point into.
pub(crate) struct Document<'a> {
    pub(crate) text: &'a str,
    pub(crate) file: &'a str,
    /// What is known of sites.
    catalogue: Option<&'a Catalogue>,
}

/// A subjob's table and where it stands.
pub(crate) type Spanned<'t> = (&'t dyn TableLike, Range<usize>);

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

impl<'a> Document<'a> {
    /// A file of this name.
    pub(crate) fn new(text: &'a str, file: &'a str) -> Self {
        Self {
            text,
            file,
            catalogue: None,
        }
    }

    /// Reads the file as TOML.
    pub(crate) fn read(&self, what: &str) -> Result<ImDocument<&'a str>, JobError> {
        if self.text.len() > MAX_BYTES {
            return Err(JobError::new(format!(
                "{what} '{}' is larger than {MAX_BYTES} bytes",
                self.file
            )));
        }
        ImDocument::parse(self.text).map_err(|error| {
            let at = error.span().unwrap_or(0..0);
            self.at(JobError::new(error.message().trim_end().replace('\n', ", ")), at)
        })
    }

    fn job(&self, top: &dyn TableLike, errors: &mut JobErrors) -> Option<Job> {
        self.unknown_keys(top, &TOP_KEYS, "a job file")
            .for_each(|e| errors.push(e));
        let mut common = self.common(top, Common::default(), errors);
        if let Some(scope) = errors.take(self.files(top)).flatten() {
            common.environment.insert(0, scope);
        }
        let name = errors.take(self.name(top)).flatten();
        let tables = errors.take(self.subjob_tables(top))?;
        let mut subjobs: Vec<Subjob> = Vec::new();
        for (table, span) in tables {
            let Some(subjob) = self.subjob(table, &span, &common, errors) else {
                continue;
            };
            if subjobs.iter().any(|s| s.site == subjob.site) {
                let error = JobError::new(format!("site '{}' is named twice", subjob.site));
                let hint = format!(
                    "give this one a name of its own and add contact = \"{}\"",
                    subjob.contact
                );
                errors.push(self.at(error.hint(hint), table.get("site").and_then(Item::span).unwrap_or(span)));
            }
            subjobs.push(subjob);
        }
        if !errors.is_empty() {
            return None;
        }
        let pins = errors.take(self.pins(top, |name| {
            let named = |s: &&Subjob| s.lan == name || s.site == name;
            subjobs.iter().find(named).map(|s| s.lan.clone())
        }))?;
        let job = Job::new(subjobs).map(|job| job.with_links(pins).called(name));
        errors.take(job.map_err(|error| JobError {
            problem: format!("{}: {}", self.file, error.problem),
            ..error
        }))
    }

    fn name(&self, top: &dyn TableLike) -> Result<Option<JobName>, JobError> {
        let text = self.text(top, "name")?;
        self.point(text.map(|t| JobName::parse(&t)).transpose(), top, "name")
    }

    fn subjob_tables<'t>(&self, top: &'t dyn TableLike) -> Result<Vec<Spanned<'t>>, JobError> {
        if top.get("subjob").is_none() {
            let error = JobError::new(format!("{}: there is no [[subjob]]", self.file));
            return Err(error.hint("add at least: [[subjob]], site = \"home\", count = 4"));
        }
        self.tables(top, "subjob")
    }

    /// The tables of a list, if there is one.
    pub(crate) fn tables<'t>(&self, table: &'t dyn TableLike, key: &str) -> Result<Vec<Spanned<'t>>, JobError> {
        let Some(item) = table.get(key) else {
            return Ok(Vec::new());
        };
        if let Some(tables) = item.as_array_of_tables() {
            return Ok(tables
                .iter()
                .map(|t| (t as &dyn TableLike, t.span().unwrap_or(0..0)))
                .collect());
        }
        let wrong = || {
            let error = JobError::new(format!("'{key}' must be a list of tables"));
            let hint = format!("write [[{key}]] in double brackets");
            self.at(error.hint(hint), item.span().unwrap_or(0..0))
        };
        let array = item.as_array().ok_or_else(wrong)?;
        array
            .iter()
            .map(|v| {
                let table = v.as_inline_table().ok_or_else(wrong)?;
                Ok((table as &dyn TableLike, v.span().unwrap_or(0..0)))
            })
            .collect()
    }

    fn subjob(
        &self,
        table: &dyn TableLike,
        span: &Range<usize>,
        top: &Common,
        errors: &mut JobErrors,
    ) -> Option<Subjob> {
        self.unknown_keys(table, &SUBJOB_KEYS, "a subjob")
            .for_each(|e| errors.push(e));
        let common = self.common(table, top.clone(), errors);
        let lan = errors.take(self.text(table, "lan")).flatten();
        let appnum = errors.take(self.appnum(table)).flatten();
        let mpi = errors.take(self.text(table, "mpi")).flatten();
        let Some(site) = errors.take(self.text(table, "site"))? else {
            let error = JobError::new("this subjob lacks 'site'");
            errors.push(self.at(error.hint("add site = \"home\" or an ssh destination"), span.clone()));
            return None;
        };
        let count = errors.take(self.tally(table, "count", &site));
        let allocation = self.allocation(table, span, &site, errors);
        let network: Vec<_> = network::KEYS
            .iter()
            .filter_map(|(key, _)| errors.take(self.network(table, key, &site)).flatten())
            .collect();
        let contact = errors.take(match self.text(table, "contact") {
            Ok(Some(contact)) => self.point(Contact::parse(&contact), table, "contact"),
            Ok(None) => self.point(Contact::parse(&site), table, "site"),
            Err(error) => Err(error),
        });
        if common.program.is_none() && table.get("program").is_none() {
            let error = JobError::new(format!("subjob '{site}' has no program"));
            errors.push(self.at(
                error.hint("add program = \"./app\" at the top of the file"),
                span.clone(),
            ));
        }
        let mut subjob = Subjob {
            contact: contact?,
            count: count?.unwrap_or(1),
            lan: lan.unwrap_or_else(|| site.clone()),
            appnum: appnum.unwrap_or(0),
            program: common.program?,
            arguments: common.arguments.unwrap_or_default(),
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
        rsl::ask(&mut subjob);
        Some(subjob)
    }

    fn network(&self, table: &dyn TableLike, key: &str, site: &str) -> Result<Option<(String, String)>, JobError> {
        match self.text(table, key)? {
            Some(value) => self.point(network::variable(site, key, &value), table, key),
            None => Ok(None),
        }
    }

    fn common(&self, table: &dyn TableLike, above: Common, errors: &mut JobErrors) -> Common {
        let mut environment = above.environment;
        if let Some(item) = table.get("environment") {
            environment.extend(errors.take(self.texts_by_name(item, "environment")).unwrap_or_default());
        }
        let mut requests = errors.take(self.requests(table)).unwrap_or_default();
        for (key, _) in terms::KEYS {
            requests.extend(errors.take(self.term(table, key)).flatten());
        }
        let own: Vec<_> = requests.iter().map(|r| (r.attribute.name, r.operator)).collect();
        let others = above.requests.into_iter();
        requests.extend(others.filter(|r| !own.contains(&(r.attribute.name, r.operator))));
        attributes::sort(&mut requests);
        Common {
            program: errors.take(self.program(table)).flatten().or(above.program),
            arguments: errors
                .take(self.texts(table, "arguments"))
                .flatten()
                .or(above.arguments),
            environment,
            directory: errors.take(self.text(table, "directory")).flatten().or(above.directory),
            stage: errors.take(self.flag(table, "stage")).flatten().or(above.stage),
            requests,
            setup: [
                above.setup,
                errors.take(self.texts(table, "setup")).flatten().unwrap_or_default(),
            ]
            .concat(),
            files: self.transfers(table, above.files, errors),
        }
    }

    /// What a name without a site means to MPI_File_open: one file of the job, or one of each site.
    fn files(&self, top: &dyn TableLike) -> Result<Option<(String, String)>, JobError> {
        let Some(value) = self.text(top, "files")? else {
            return Ok(None);
        };
        let checked = match &*value {
            "shared" | "local" => Ok(Some((network::FILE_SCOPE.to_owned(), value))),
            _ => Err(JobError::new(format!("files = '{value}' means nothing"))
                .hint("shared: one file for the whole job; local: each site has its own")),
        };
        self.point(checked, top, "files")
    }

    /// Files of a subjob replace those that stand at the top.
    fn transfers(&self, table: &dyn TableLike, above: Transfers, errors: &mut JobErrors) -> Transfers {
        Transfers {
            inputs: self
                .parsed(table, "inputs", errors, Input::parse)
                .unwrap_or(above.inputs),
            outputs: self
                .parsed(table, "outputs", errors, Pattern::parse)
                .unwrap_or(above.outputs),
            results: errors.take(self.text(table, "results")).flatten().or(above.results),
            ..Transfers::default()
        }
    }

    fn parsed<T>(
        &self,
        table: &dyn TableLike,
        key: &str,
        errors: &mut JobErrors,
        parse: impl Fn(&str) -> Result<T, JobError>,
    ) -> Option<Vec<T>> {
        let texts = errors.take(self.texts(table, key)).flatten()?;
        let items = table.get(key).and_then(Item::as_array);
        let spans = items.into_iter().flatten().map(|v| v.span().unwrap_or(0..0));
        let parsed = texts
            .iter()
            .zip(spans)
            .map(|(text, span)| parse(text).map_err(|e| self.at(e, span)));
        Some(parsed.filter_map(|result| errors.take(result)).collect())
    }

    /// Relations of RSL about attributes that are kept.
    fn requests(&self, table: &dyn TableLike) -> Result<Vec<Request>, JobError> {
        let texts = self.texts(table, "requests")?.unwrap_or_default();
        let item = table.get("requests").and_then(Item::as_array);
        let spans = item.into_iter().flatten().map(|v| v.span().unwrap_or(0..0));
        texts
            .iter()
            .zip(spans)
            .map(|(text, span)| self.request(text).map_err(|error| self.at(error, span)))
            .collect()
    }

    fn request(&self, text: &str) -> Result<Request, JobError> {
        let wrong = |why: &str| {
            JobError::new(format!("request '{}' {why}", crate::quoted::shown(text)))
                .hint("write for example \"min_memory >= 512\"; `isthmus job attributes` lists them")
        };
        let spec = rsl::evaluate(text, self.file, &[]).map_err(|errors| {
            let first = errors.iter().next().map_or("", |e| e.problem.as_str());
            wrong(&format!("is no relation: {first}"))
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
    fn term(&self, table: &dyn TableLike, key: &str) -> Result<Option<Request>, JobError> {
        let (Some(item), Some(attribute)) = (table.get(key), terms::attribute(key)) else {
            return Ok(None);
        };
        let span = item.span().unwrap_or(0..0);
        let texts = match attribute.shape {
            Shape::Texts => self.texts(table, key)?,
            _ => self.text(table, key)?.map(|text| vec![text]),
        };
        let datum = |text: &String| {
            Ok(Datum {
                content: Content::Text(terms::value_of_attribute(key, text)?),
                span: span.clone(),
            })
        };
        let values: Result<Vec<Datum>, JobError> = texts.iter().flatten().map(datum).collect();
        let values = self.point(values, table, key)?;
        let request = attribute.request(Operator::Equal, &values);
        request.map(Some).map_err(|(_, problem, hint)| {
            let error = JobError::new(problem.replace(attribute.name, key));
            self.at(if hint.is_empty() { error } else { error.hint(hint) }, span)
        })
    }

    fn appnum(&self, table: &dyn TableLike) -> Result<Option<u32>, JobError> {
        let Some(item) = table.get("appnum") else {
            return Ok(None);
        };
        let number = item.as_integer().and_then(|n| u32::try_from(n).ok());
        number
            .map(Some)
            .ok_or_else(|| self.wrong_type(item, "appnum", "a number from 0"))
    }

    /// What a subjob or a site asks of its scheduler. All that is wrong with it goes to `errors`.
    pub(crate) fn allocation(
        &self,
        table: &dyn TableLike,
        span: &Range<usize>,
        site: &str,
        errors: &mut JobErrors,
    ) -> Option<Allocation> {
        let word = errors.take(self.text(table, "scheduler"))?;
        let scheduler = match &word {
            Some(word) => errors.take(self.point(allocation::scheduler(word), table, "scheduler")),
            None => Some(self.usual_scheduler(table, site)),
        };
        let limit = match self.text(table, "limit") {
            Ok(text) => self.point(text.map(|t| allocation::limit(&t)).transpose(), table, "limit"),
            Err(error) => Err(error),
        };
        let asked = |scheduler, errors: &mut JobErrors| Allocation {
            scheduler,
            queue: errors.take(self.text(table, "queue")).flatten().unwrap_or_default(),
            account: errors.take(self.text(table, "account")).flatten().unwrap_or_default(),
            limit: errors.take(limit).flatten().unwrap_or(0),
            nodes: errors.take(self.tally(table, "nodes", site)).flatten().unwrap_or(0),
            exclusive: errors.take(self.flag(table, "exclusive")).flatten().unwrap_or(false),
            directives: errors
                .take(self.texts(table, "directives"))
                .flatten()
                .unwrap_or_default(),
        };
        match scheduler {
            Some(Some(scheduler)) => Some(asked(scheduler, errors)),
            Some(None) => {
                let key = ASKED.into_iter().find(|key| table.contains_key(key))?;
                let at = table.get(key).and_then(Item::span).unwrap_or_else(|| span.clone());
                errors.push(self.at(sites::needs_scheduler(site), at));
                None
            }
            // Whichever it was meant to be, the rest is looked at too.
            None => {
                asked(Scheduler::Slurm, errors);
                None
            }
        }
    }

    /// The scheduler that a site is known to have, for a subjob that asks something of it.
    fn usual_scheduler(&self, table: &dyn TableLike, site: &str) -> Option<Scheduler> {
        let contact = table.get("contact").and_then(Item::as_str).unwrap_or(site);
        let asks = ASKED.into_iter().any(|key| table.contains_key(key));
        self.catalogue.filter(|_| asks)?.scheduler(contact)
    }

    pub(crate) fn flag(&self, table: &dyn TableLike, key: &str) -> Result<Option<bool>, JobError> {
        let Some(item) = table.get(key) else { return Ok(None) };
        item.as_bool()
            .map(Some)
            .ok_or_else(|| self.wrong_type(item, key, "true or false"))
    }

    fn program(&self, table: &dyn TableLike) -> Result<Option<Program>, JobError> {
        let Some(item) = table.get("program") else {
            return Ok(None);
        };
        if let Some(text) = item.as_str() {
            return Ok(Some(Program::one(text)));
        }
        if item.as_table_like().is_none() {
            return Err(self.wrong_type(item, "program", "a text, or a table of texts by architecture"));
        }
        let by_architecture = self.texts_by_name(item, "program")?.into_iter().collect();
        Ok(Some(Program {
            any: None,
            by_architecture,
        }))
    }

    pub(crate) fn texts(&self, table: &dyn TableLike, key: &str) -> Result<Option<Vec<String>>, JobError> {
        let Some(item) = table.get(key) else {
            return Ok(None);
        };
        let array = item
            .as_array()
            .ok_or_else(|| self.wrong_type(item, key, "a list of texts"))?;
        let texts = array.iter().map(|v| self.argument(v)).collect::<Result<_, _>>()?;
        Ok(Some(texts))
    }

    fn argument(&self, value: &Value) -> Result<String, JobError> {
        value.as_str().map(str::to_owned).ok_or_else(|| {
            let error = JobError::new(format!(
                "an argument must be a text, this is {}",
                article(value.type_name())
            ));
            let quoted = value.to_string();
            self.at(
                error.hint(format!("write \"{}\"", quoted.trim())),
                value.span().unwrap_or(0..0),
            )
        })
    }

    /// A number of processes, or of nodes for them.
    fn tally(&self, table: &dyn TableLike, key: &str, site: &str) -> Result<Option<u32>, JobError> {
        let Some(item) = table.get(key) else { return Ok(None) };
        let number = item
            .as_integer()
            .ok_or_else(|| self.wrong_type(item, key, "a number"))?;
        if number < 1 {
            let what = if key == "nodes" { "nodes" } else { "processes" };
            let error = JobError::new(format!("site '{site}' is asked for {number} {what}")).hint("ask for at least 1");
            return self.point(Err(error), table, key);
        }
        let count = to_count(number).and_then(|count| check_count(site, count).map(|()| count));
        self.point(count, table, key).map(Some)
    }

    pub(crate) fn texts_by_name(&self, item: &Item, key: &str) -> Result<Vec<(String, String)>, JobError> {
        let table = item
            .as_table_like()
            .ok_or_else(|| self.wrong_type(item, key, "a table of texts"))?;
        table
            .iter()
            .map(|(name, value)| match value.as_str() {
                Some(text) => Ok((name.to_owned(), text.to_owned())),
                None => Err(self.wrong_type(value, &format!("{key}.{name}"), "a text")),
            })
            .collect()
    }

    pub(crate) fn text(&self, table: &dyn TableLike, key: &str) -> Result<Option<String>, JobError> {
        match table.get(key) {
            None => Ok(None),
            Some(item) => match item.as_str() {
                Some(text) => Ok(Some(text.to_owned())),
                None => Err(self.wrong_type(item, key, "a text")),
            },
        }
    }

    pub(crate) fn check_keys(&self, table: &dyn TableLike, known: &[&str], place: &str) -> Result<(), JobError> {
        self.unknown_keys(table, known, place).next().map_or(Ok(()), Err)
    }

    /// An error for every key that is not known.
    pub(crate) fn unknown_keys<'k>(
        &'k self,
        table: &'k dyn TableLike,
        known: &'k [&'k str],
        place: &'k str,
    ) -> impl Iterator<Item = JobError> + 'k {
        let names = table.iter().map(|(name, _)| name);
        names.filter(|name| !known.contains(name)).map(move |name| {
            let span = table
                .get_key_value(name)
                .and_then(|(key, _)| key.span())
                .unwrap_or(0..0);
            let hint = match nearest(name, known) {
                Some(near) => format!("did you mean '{near}'?"),
                None => format!("known keys: {}", known.join(", ")),
            };
            let error = JobError::new(format!("unknown key '{name}' in {place}"));
            self.at(error.hint(hint), span)
        })
    }

    pub(crate) fn wrong_type(&self, item: &Item, key: &str, wanted: &str) -> JobError {
        let problem = format!("'{key}' must be {wanted}, this is {}", article(item.type_name()));
        self.at(JobError::new(problem), item.span().unwrap_or(0..0))
    }

    /// Adds the place of a key's value to an error.
    pub(crate) fn point<T>(
        &self,
        result: Result<T, JobError>,
        table: &dyn TableLike,
        key: &str,
    ) -> Result<T, JobError> {
        result.map_err(|error| self.at(error, table.get(key).and_then(Item::span).unwrap_or(0..0)))
    }

    pub(crate) fn at(&self, error: JobError, span: Range<usize>) -> JobError {
        error.at(self.file, self.text, span)
    }
}

fn article(type_name: &str) -> String {
    let article = if type_name.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    };
    format!("{article} {type_name}")
}

#[cfg(test)]
mod tests;
