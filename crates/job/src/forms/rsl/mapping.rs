// SPDX-License-Identifier: Apache-2.0
//! From an evaluated request to a job.

use super::report::Report;
use super::syntax::{Compound, Join, Operator, Relation, Span, Spec};
use crate::allocation;
use crate::asked;
use crate::attributes::{self, ATTRIBUTES, Attribute, Content, Datum, Fate, Request, canonical, find};
use crate::contact;
use crate::error::JobError;
use crate::forms::Described;
use crate::forms::sites;
use crate::model::{Contact, Job, MAX_PROCESSES_PER_MACHINE, MAX_SUBJOBS, Program, Subjob, check_count};
use crate::naming::check_name;
use crate::quoted::shown;
use crate::transfer::Location;
use isthmus_settings::nearest;
use isthmus_wire::grid::Allocation;

/// Names the place of a subjob in the job.
pub(crate) const INDEX: &str = "GLOBUS_DUROC_SUBJOB_INDEX";
/// Names the local area of a subjob.
pub(crate) const LAN: &str = "GLOBUS_LAN_ID";

/// The job of a request; `contact` is that of a request without one.
pub(super) fn job(spec: &Spec<Datum>, contact: Option<&str>, report: &mut Report<'_>) -> Option<Described> {
    let mut groups = Vec::new();
    collect(spec, &mut groups, report);
    if groups.len() > MAX_SUBJOBS {
        let problem = format!("{} subjobs are above the limit of {MAX_SUBJOBS}", groups.len());
        report.error(groups[0].span.clone(), problem, "");
        return None;
    }
    let multi = matches!(spec, Spec::Compound(Compound { join: Join::Multi, .. }));
    let mut mapper = Mapper { multi, contact, report };
    let drafts: Vec<Draft> = groups.iter().filter_map(|group| mapper.subjob(group)).collect();
    if drafts.len() != groups.len() || !mapper.report.errors.is_empty() {
        mapper.check_indexes(&drafts);
        return None;
    }
    mapper.check_indexes(&drafts).then_some(())?;
    let dry_run = drafts.iter().any(|d| d.dry_run);
    let mut drafts = drafts;
    drafts.sort_by_key(|d| d.index.as_ref().map(|(index, _)| *index));
    let mut subjobs: Vec<Subjob> = drafts.into_iter().map(|d| d.subjob).collect();
    subjobs.iter_mut().for_each(|s| attributes::sort(&mut s.requests));
    sites::name_apart(&mut subjobs);
    let lan = |s: &mut Subjob| {
        if s.lan.is_empty() {
            s.lan.clone_from(&s.site);
        }
    };
    subjobs.iter_mut().for_each(lan);
    let job = Job::new(subjobs).map_err(|error| JobError {
        problem: format!("{}: {}", report.source.file(), error.problem),
        ..error
    });
    let job = report.errors.take(job)?;
    Some(Described {
        job,
        notes: Vec::new(),
        dry_run,
    })
}

/// The relations of one subjob.
struct Group<'s> {
    relations: Vec<&'s Relation<Datum>>,
    span: Span,
    damaged: bool,
}

/// The subjobs of a request.
fn collect<'s>(spec: &'s Spec<Datum>, groups: &mut Vec<Group<'s>>, report: &mut Report<'_>) {
    match spec {
        Spec::Compound(compound) if compound.join == Join::Multi => {
            compound.members.iter().for_each(|m| collect(m, groups, report));
        }
        Spec::Compound(compound) => {
            let mut relations = Vec::new();
            flatten(spec, &mut relations, report);
            groups.push(Group {
                relations,
                span: compound.span.clone(),
                damaged: compound.damaged,
            });
        }
        Spec::Relation(relation) => groups.push(Group {
            relations: vec![relation],
            span: relation.span.clone(),
            damaged: false,
        }),
    }
}

/// All relations that hold together; of alternatives the first that can be used.
fn flatten<'s>(spec: &'s Spec<Datum>, relations: &mut Vec<&'s Relation<Datum>>, report: &mut Report<'_>) {
    match spec {
        Spec::Relation(relation) => relations.push(relation),
        Spec::Compound(compound) => match compound.join {
            Join::All => compound.members.iter().for_each(|m| flatten(m, relations, report)),
            Join::Any => relations.extend(choose(compound, report)),
            Join::Multi => report.error(
                compound.span.clone(),
                "'+' is not allowed inside '&' or '|'",
                "put it in front of the whole request",
            ),
        },
    }
}

fn choose<'s>(compound: &'s Compound<Datum>, report: &mut Report<'_>) -> Vec<&'s Relation<Datum>> {
    let mut first = None;
    for (number, member) in compound.members.iter().enumerate() {
        let mut relations = Vec::new();
        flatten(member, &mut relations, report);
        if relations.iter().all(|r| usable(r)) {
            let problem = format!(
                "of {} alternatives number {} is taken",
                compound.members.len(),
                number + 1
            );
            report.note(compound.span.clone(), problem, "no other one is tried");
            return relations;
        }
        first = first.or(Some(relations));
    }
    first.unwrap_or_default()
}

fn usable(relation: &Relation<Datum>) -> bool {
    find(&relation.attribute).is_some_and(|attribute| match attribute.fate {
        Fate::Refused(_) => false,
        Fate::Understood(_) | Fate::Obeyed(_) => {
            relation.operator == Operator::Equal && attribute.check(&relation.values).is_ok()
        }
        Fate::Kept(_) | Fate::Scheduled(_) => attribute.check(&relation.values).is_ok(),
    })
}

/// Whether a label is a name for a site, or one that mpirun of MPICH-G2 makes up.
pub(crate) fn label_says_nothing_more(label: &str) -> bool {
    let number = label.strip_prefix("subjob ").unwrap_or_default();
    let made_up = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    made_up || check_name("site", label).is_ok()
}

/// A subjob that is being made.
struct Draft {
    subjob: Subjob,
    index: Option<(u64, Span)>,
    span: Span,
    dry_run: bool,
    reached: bool,
}

struct Mapper<'r, 'a> {
    multi: bool,
    contact: Option<&'r str>,
    report: &'r mut Report<'a>,
}

impl Mapper<'_, '_> {
    /// Nothing when an attribute is wrong, which has been told.
    fn subjob(&mut self, group: &Group<'_>) -> Option<Draft> {
        let errors = self.report.errors.count();
        let mut draft = Draft {
            subjob: sites::template(Program::default(), Vec::new()),
            index: None,
            span: group.span.clone(),
            dry_run: false,
            reached: false,
        };
        draft.subjob.lan.clear();
        let mut seen: Vec<(&'static str, Span)> = Vec::new();
        for relation in &group.relations {
            self.relation(relation, &mut draft, &mut seen);
        }
        // What is missing may be what is misspelt.
        let misspelt = group.relations.iter().any(|r| find(&r.attribute).is_none());
        if !group.damaged && !misspelt {
            self.check_complete(group, &mut draft);
        }
        self.check_job_type(&draft);
        asked::of_requests(&mut draft.subjob);
        Self::name(&mut draft);
        Self::place(&mut draft);
        (self.report.errors.count() == errors).then_some(draft)
    }

    fn relation(&mut self, relation: &Relation<Datum>, draft: &mut Draft, seen: &mut Vec<(&'static str, Span)>) {
        let Some(attribute) = find(&relation.attribute) else {
            return self.unknown(relation);
        };
        if relation.operator == Operator::Equal {
            let key = match attribute.fate {
                Fate::Understood(field) => field,
                _ => attribute.name,
            };
            let known = seen.iter().find(|(other, _)| *other == key);
            if let Some((_, first)) = known {
                let hint = format!("it is already in line {}", self.report.line(first.start));
                let problem = format!("'{}' is given twice", attribute.name);
                return self.report.error(relation.span.clone(), problem, hint);
            }
            seen.push((key, relation.span.clone()));
        }
        match attribute.fate {
            Fate::Refused(hint) => {
                let problem = format!("'{}' cannot be asked for", attribute.name);
                self.report.error(relation.span.clone(), problem, hint);
            }
            Fate::Understood(_) | Fate::Obeyed(_) if relation.operator != Operator::Equal => {
                let problem = format!("'{}' can only be set with '='", attribute.name);
                self.report.error(relation.span.clone(), problem, "");
            }
            Fate::Kept(_) | Fate::Obeyed(_) | Fate::Scheduled(_) => {
                match attribute.request(relation.operator, &relation.values) {
                    Ok(request) => draft.subjob.requests.push(request),
                    Err(fault) => self.report.fault(fault),
                }
            }
            Fate::Understood(_) => self.understand(attribute, relation, draft),
        }
    }

    fn unknown(&mut self, relation: &Relation<Datum>) {
        let names: Vec<&str> = ATTRIBUTES.iter().map(|a| a.name).collect();
        let plain: Vec<String> = names.iter().map(|n| canonical(n)).collect();
        let plain: Vec<&str> = plain.iter().map(String::as_str).collect();
        let near = nearest(&canonical(&relation.attribute), &plain);
        let hint = match near.and_then(|near| plain.iter().position(|p| *p == near)) {
            Some(at) => format!("did you mean '{}'?", names[at]),
            None => "`isthmus job attributes` lists those that are known".to_owned(),
        };
        let problem = format!("unknown attribute '{}'", shown(&relation.attribute));
        self.report.error(relation.span.clone(), problem, hint);
    }

    fn understand(&mut self, attribute: &'static Attribute, relation: &Relation<Datum>, draft: &mut Draft) {
        let values = &relation.values;
        let done = match attribute.name {
            "environment" => {
                values.iter().for_each(|v| self.variable(v, draft));
                Ok(())
            }
            "arguments" => attribute.check(values).map(|()| {
                let texts = values.iter().filter_map(Datum::text).map(str::to_owned);
                draft.subjob.sections[0].arguments = texts.collect();
            }),
            _ => attribute
                .only(values)
                .and_then(|value| Ok((value, attribute.one_text(value)?)))
                .map(|(value, text)| self.one(attribute, value, text, draft)),
        };
        if let Err(fault) = done {
            self.report.fault(fault);
        }
    }

    fn one(&mut self, attribute: &'static Attribute, value: &Datum, text: &str, draft: &mut Draft) {
        match attribute.name {
            "executable" => self.executable(value, text, draft),
            "directory" => draft.subjob.directory = Some(text.to_owned()),
            "count" => self.count(value, text, draft),
            "dryRun" => match attribute.check(std::slice::from_ref(value)) {
                Ok(()) => draft.dry_run = text == "yes",
                Err(fault) => self.report.fault(fault),
            },
            _ => self.reach(value.span.clone(), text, draft),
        }
    }

    /// A path is a file of the site; a `file:` URL is a file here that the site gets.
    fn executable(&mut self, value: &Datum, text: &str, draft: &mut Draft) {
        if text.is_empty() {
            return self
                .report
                .error(value.span.clone(), "the path of the executable is empty", "");
        }
        let (stage, path) = match text.strip_prefix("file://") {
            Some(path) => (
                true,
                path.strip_prefix("localhost/")
                    .map_or(path, |_| &path["localhost".len()..]),
            ),
            None => (text.contains("://"), text),
        };
        if path.is_empty() {
            let problem = "this URL names no file";
            return self.report.error(value.span.clone(), problem, "write file:///PATH");
        }
        if let Some(error) = Location::parse(path).err().filter(|_| path.contains("://")) {
            let hint = "get the file and name it file:///PATH, or by its path at the site";
            self.report.note(value.span.clone(), error.problem, hint);
        }
        draft.subjob.stage = stage;
        draft.subjob.sections[0].program = Program::one(path);
    }

    fn count(&mut self, value: &Datum, text: &str, draft: &mut Draft) {
        let count = text.parse::<u32>().ok();
        match count.filter(|count| check_count("", *count).is_ok()) {
            Some(count) => draft.subjob.count = count,
            None => self.report.error(
                value.span.clone(),
                format!("'{}' is not a number of processes (GRAM error 14)", shown(text)),
                format!("a subjob has 1 to {MAX_PROCESSES_PER_MACHINE} of them"),
            ),
        }
    }

    fn variable(&mut self, value: &Datum, draft: &mut Draft) {
        let Some((name, text)) = value.pair() else {
            return self.not_a_pair(value);
        };
        let blank = text.is_empty() || check_name("lan", text).is_err();
        match name {
            INDEX => match text.parse() {
                Ok(index) => draft.index = Some((index, value.span.clone())),
                Err(_) => self.report.error(
                    value.span.clone(),
                    format!("'{}' is not the index of a subjob", shown(text)),
                    "subjobs are numbered 0, 1, 2, ... in the order of their ranks",
                ),
            },
            LAN if blank => self.report.error(
                value.span.clone(),
                format!("'{}' cannot name a local area", shown(text)),
                "choose a word without blanks",
            ),
            LAN => text.clone_into(&mut draft.subjob.lan),
            _ if name.is_empty() || name.contains('=') => self.report.error(
                value.span.clone(),
                format!("'{}' is not the name of an environment variable", shown(name)),
                "",
            ),
            _ => draft.subjob.environment.push((name.to_owned(), text.to_owned())),
        }
    }

    fn not_a_pair(&mut self, value: &Datum) {
        let words: Vec<&str> = match &value.content {
            Content::List(list) => list.iter().filter_map(Datum::text).collect(),
            Content::Text(_) => Vec::new(),
        };
        let hint = match words.as_slice() {
            [] => "put the pair in parentheses: (environment = (NAME VALUE))".to_owned(),
            [name] => format!("give it a value: ({0} VALUE), or ({0} \"\")", shown(name)),
            [name @ .., value] => {
                format!(
                    "names have no blanks; put values with blanks into quotes: ({} {})",
                    name.join("_"),
                    shown(value)
                )
            }
        };
        let problem = "an entry of the environment is a name and a value (GRAM error 40)";
        self.report.error(value.span.clone(), problem, hint);
    }

    /// Where the subjob runs.
    fn reach(&mut self, span: Span, text: &str, draft: &mut Draft) {
        draft.reached = true;
        let gram = match contact::parse(text) {
            Ok(gram) => gram,
            Err(error) => {
                return self.report.error(span, error.problem, error.hint.unwrap_or_default());
            }
        };
        draft.subjob.contact = gram.contact;
        if !gram.dropped.is_empty() {
            let problem = format!("the {} of this contact has no effect", gram.dropped.join(" and the "));
            self.report.note(
                span.clone(),
                problem,
                "sites are reached by ssh, with its own configuration",
            );
        }
        if let Some(word) = gram.scheduler {
            match allocation::scheduler(&word) {
                Ok(scheduler) => {
                    draft.subjob.forks = scheduler.is_none();
                    draft.subjob.allocation = scheduler.map(Allocation::new);
                }
                Err(error) => self.report.error(span, error.problem, error.hint.unwrap_or_default()),
            }
        }
    }

    fn check_complete(&mut self, group: &Group<'_>, draft: &mut Draft) {
        if draft.subjob.sections[0].program.any.is_none() {
            self.report.error(
                group.span.clone(),
                "there is no executable",
                "add (executable = PROGRAM)",
            );
        }
        match (draft.reached, self.contact) {
            (false, Some(contact)) if !self.multi => self.reach(group.span.clone(), contact, draft),
            (false, _) if self.multi => self.report.error(
                group.span.clone(),
                "this subjob does not say where it runs",
                "add (resourceManagerContact = HOST), with what you would write after ssh, or home",
            ),
            (true, Some(_)) => self.report.error(
                group.span.clone(),
                "the request names its contact, and so does the command line",
                "leave out one of them",
            ),
            _ => {}
        }
    }

    /// A relative directory is below the home directory there, as in GRAM; at home below the user's, as everything is.
    fn place(draft: &mut Draft) {
        let is_home = draft.subjob.contact == Contact::Home;
        let relative = draft
            .subjob
            .directory
            .as_mut()
            .filter(|path| !path.starts_with(['/', '~', '$']));
        if let Some(path) = relative.filter(|_| !is_home) {
            path.insert_str(0, "~/");
        }
    }

    fn check_job_type(&mut self, draft: &Draft) {
        if draft.subjob.request("jobType") == Some("single") && draft.subjob.count > 1 {
            self.report.error(
                draft.span.clone(),
                format!("jobType=single starts one process, count is {}", draft.subjob.count),
                "write (jobType = multiple) or (count = 1)",
            );
        }
    }

    /// A label that can be a name is the name of the site in the job; what mpirun of MPICH-G2 makes up says nothing.
    fn name(draft: &mut Draft) {
        draft.subjob.site = draft.subjob.contact.to_string();
        let Some(label) = draft.subjob.request("label").map(str::to_owned) else {
            return;
        };
        if label_says_nothing_more(&label) {
            let is_label = |r: &Request| r.attribute.name == "label" && r.operator == Operator::Equal;
            draft.subjob.requests.retain(|r| !is_label(r));
        }
        if check_name("site", &label).is_ok() {
            draft.subjob.site = label;
        }
    }

    /// Either no subjob has an index, or they are 0, 1, ... in any order.
    fn check_indexes(&mut self, drafts: &[Draft]) -> bool {
        if drafts.iter().all(|d| d.index.is_none()) {
            return true;
        }
        let errors = self.report.errors.count();
        let mut seen: Vec<(u64, &Span)> = Vec::new();
        for draft in drafts {
            let Some((index, span)) = &draft.index else {
                let hint = format!("give it the {INDEX} that is missing, or none to any");
                self.report.error(
                    draft.span.clone(),
                    format!("this subjob has no {INDEX}, others have"),
                    hint,
                );
                continue;
            };
            if let Some((_, first)) = seen.iter().find(|(other, _)| other == index) {
                let hint = format!(
                    "the other one is in line {}; each number from 0 occurs once",
                    self.report.line(first.start)
                );
                self.report
                    .error(span.clone(), format!("two subjobs have the index {index}"), hint);
            } else if *index >= drafts.len() as u64 && self.report.errors.is_empty() {
                let hint = format!("there are {} subjobs: 0 to {}", drafts.len(), drafts.len() - 1);
                self.report
                    .error(span.clone(), format!("there is no subjob number {index}"), hint);
            }
            seen.push((*index, span));
        }
        self.report.errors.count() == errors
    }
}
