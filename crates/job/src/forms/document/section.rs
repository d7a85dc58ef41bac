// SPDX-License-Identifier: Apache-2.0
//! What a subjob of a job file runs: one program, or one in each `[[subjob.section]]`.

use crate::asked;
use crate::error::{JobError, JobErrors};
use crate::model::{Program, Section};
use crate::source::Table;

/// The key of the sections in a subjob.
pub(super) const KEY: &str = "section";

pub(super) const KEYS: [&str; 6] = ["appnum", "arguments", "count", "directory", "environment", "program"];

/// What a subjob says for sections that do not.
pub(super) struct Above<'a> {
    pub(super) site: &'a str,
    pub(super) program: Option<&'a Program>,
    pub(super) arguments: &'a [String],
    /// Where a key is to be written that no section has.
    pub(super) elsewhere: &'a dyn Fn(&str) -> Option<String>,
}

/// The sections of a subjob and the number of all processes.
pub(super) fn read(table: &Table<'_>, above: &Above<'_>, errors: &mut JobErrors) -> Option<(Vec<Section>, u32)> {
    let site = above.site;
    if !table.has(KEY) {
        let count = errors.take(asked::tally(table, "count", site));
        let appnum = errors.take(appnum(table)).flatten();
        let mut only = Section::only(lacking(table, above, errors)?, Vec::new());
        only.arguments = above.arguments.to_vec();
        only.appnum = appnum.unwrap_or(0);
        return Some((vec![only], count?.unwrap_or(1)));
    }
    for key in ["appnum", "count"].into_iter().filter(|key| table.has(key)) {
        let error = JobError::new(format!("subjob '{site}' has sections and '{key}'"));
        errors.push(table.at_key(key, error.hint(format!("write {key} in each [[subjob.{KEY}]]"))));
    }
    let (mut sections, mut first) = (Vec::new(), 0u32);
    let tables = errors.take(table.tables(KEY))?;
    for (number, table) in (0u32..).zip(tables) {
        let (section, count) = one(&table, above, number, errors)?;
        sections.push(Section { first, ..section });
        first = first.saturating_add(count);
    }
    if sections.is_empty() {
        let error = JobError::new(format!("subjob '{site}' has no program"));
        errors.push(table.at_key(KEY, error.hint(format!("add [[subjob.{KEY}]] with a program"))));
        return None;
    }
    Some((sections, first))
}

fn one(table: &Table<'_>, above: &Above<'_>, number: u32, errors: &mut JobErrors) -> Option<(Section, u32)> {
    table.check_keys_and_places(&KEYS, "a section", above.elsewhere, errors);
    let count = errors.take(asked::tally(table, "count", above.site));
    let own = errors.take(program(table)).flatten();
    let arguments = errors.take(table.texts("arguments")).flatten();
    let appnum = errors.take(appnum(table)).flatten();
    let environment = errors.take(table.texts_by_name("environment")).flatten();
    let directory = errors.take(table.text("directory")).flatten();
    let program = match own {
        Some(own) => own,
        None => lacking(table, above, errors)?,
    };
    let section = Section {
        first: 0,
        appnum: appnum.unwrap_or(number),
        program,
        arguments: arguments.unwrap_or_else(|| above.arguments.to_vec()),
        environment: environment.unwrap_or_default(),
        directory,
    };
    Some((section, count?.unwrap_or(1)))
}

/// The program of the subjob where a section names none, or a complaint that there is none.
fn lacking(table: &Table<'_>, above: &Above<'_>, errors: &mut JobErrors) -> Option<Program> {
    if above.program.is_none() && !table.has("program") {
        let error = JobError::new(format!("subjob '{}' has no program", above.site));
        errors.push(table.at(error.hint("add program = \"./app\" at the top of the file")));
    }
    above.program.cloned()
}

fn appnum(table: &Table<'_>) -> Result<Option<u32>, JobError> {
    let Some(item) = table.get("appnum") else {
        return Ok(None);
    };
    let number = item.as_integer().and_then(|n| u32::try_from(n).ok());
    let number = number.map(Some);
    number.ok_or_else(|| table.wrong_type(item, "appnum", "a number from 0"))
}

pub(super) fn program(table: &Table<'_>) -> Result<Option<Program>, JobError> {
    let Some(item) = table.get("program") else {
        return Ok(None);
    };
    if let Some(text) = item.as_str() {
        return Ok(Some(Program::one(text)));
    }
    if item.as_table_like().is_none() {
        return Err(table.wrong_type(item, "program", "a text, or a table of texts by architecture"));
    }
    let by_architecture = table.texts_by_name("program")?;
    Ok(Some(Program {
        any: None,
        by_architecture: by_architecture.into_iter().flatten().collect(),
    }))
}
