// SPDX-License-Identifier: Apache-2.0
//! A file of the user in TOML: its tables, what their keys say, and the place in the file that an error points at.

use crate::error::{JobError, JobErrors};
use isthmus_settings::nearest;
use std::ops::Range;
use toml_edit::{ImDocument, Item, TableLike, Value};

/// Largest file, bytes.
pub const MAX_BYTES: usize = 4 << 20;

/// A file of the user: what errors point into.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    text: &'a str,
    file: &'a str,
}

impl<'a> Source<'a> {
    /// A file of this name.
    pub(crate) fn new(text: &'a str, file: &'a str) -> Self {
        Self { text, file }
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    pub(crate) fn file(&self) -> &'a str {
        self.file
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
            let told = JobError::new(error.message().trim_end().replace('\n', ", "));
            // A word without quotes, or with those of a text processor.
            let unquoted =
                error.message().starts_with("invalid string") || error.message().starts_with("invalid float");
            let told = if unquoted {
                told.hint("put texts in straight quotes: name = \"text\"")
            } else {
                told
            };
            self.at(told, at)
        })
    }

    /// Adds a place to an error.
    pub(crate) fn at(&self, error: JobError, span: Range<usize>) -> JobError {
        error.at(self.file, self.text, span)
    }
}

/// A table of a file.
#[derive(Clone)]
pub(crate) struct Table<'t> {
    source: Source<'t>,
    keys: &'t dyn TableLike,
    span: Range<usize>,
}

impl<'t> Table<'t> {
    /// The whole of a file that was read.
    pub(crate) fn top(source: Source<'t>, document: &'t ImDocument<&'t str>) -> Self {
        Self {
            source,
            keys: document.as_table(),
            span: 0..0,
        }
    }

    /// The name of the file for messages.
    pub(crate) fn file(&self) -> &'t str {
        self.source.file
    }

    /// What is wrong with the file as a whole.
    pub(crate) fn of_file(&self, problem: &str) -> JobError {
        JobError::new(format!("{}: {problem}", self.source.file))
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.keys.contains_key(key)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'t Item> {
        self.keys.get(key)
    }

    /// Keys and values in the order of the file.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'t str, &'t Item)> {
        self.keys.iter()
    }

    /// Adds the place of the table to an error.
    pub(crate) fn at(&self, error: JobError) -> JobError {
        self.source.at(error, self.span.clone())
    }

    /// Adds the place of a key's value to an error, or of the table where there is none.
    pub(crate) fn at_key(&self, key: &str, error: JobError) -> JobError {
        let span = self.get(key).and_then(Item::span);
        self.source.at(error, span.unwrap_or_else(|| self.span.clone()))
    }

    /// The same to the error of a result.
    pub(crate) fn point<T>(&self, key: &str, result: Result<T, JobError>) -> Result<T, JobError> {
        result.map_err(|error| self.at_key(key, error))
    }

    /// Adds the place of a value in this file to an error.
    pub(crate) fn at_value(&self, value: &Value, error: JobError) -> JobError {
        self.source.at(error, value.span().unwrap_or(0..0))
    }

    /// What stands here under a key is of another kind than it must be.
    pub(crate) fn wrong_type(&self, item: &Item, key: &str, wanted: &str) -> JobError {
        let problem = format!("'{key}' must be {wanted}, this is {}", article(item.type_name()));
        self.source.at(JobError::new(problem), item.span().unwrap_or(0..0))
    }

    /// The table under a key. An error says what it should be.
    pub(crate) fn table(&self, key: &str, wanted: &str) -> Result<Option<Self>, JobError> {
        let Some(item) = self.get(key) else { return Ok(None) };
        let keys = item.as_table_like().ok_or_else(|| self.wrong_type(item, key, wanted))?;
        let key = self.keys.get_key_value(key).and_then(|(key, _)| key.span());
        Ok(Some(Self {
            source: self.source,
            keys,
            span: key.unwrap_or(0..0),
        }))
    }

    /// The tables of a list, if there is one.
    pub(crate) fn tables(&self, key: &str) -> Result<Vec<Self>, JobError> {
        let Some(item) = self.get(key) else {
            return Ok(Vec::new());
        };
        let of = |keys: &'t dyn TableLike, span: Option<Range<usize>>| Self {
            source: self.source,
            keys,
            span: span.unwrap_or(0..0),
        };
        if let Some(tables) = item.as_array_of_tables() {
            return Ok(tables.iter().map(|table| of(table, table.span())).collect());
        }
        let wrong = || {
            let error = JobError::new(format!("'{key}' must be a list of tables"));
            self.at_key(key, error.hint(format!("write [[{key}]] in double brackets")))
        };
        let array = item.as_array().ok_or_else(wrong)?;
        let tables = array
            .iter()
            .map(|value| Ok(of(value.as_inline_table().ok_or_else(wrong)?, value.span())));
        tables.collect()
    }

    pub(crate) fn text(&self, key: &str) -> Result<Option<String>, JobError> {
        let Some(item) = self.get(key) else { return Ok(None) };
        let text = item.as_str().ok_or_else(|| self.wrong_type(item, key, "a text"))?;
        Ok(Some(text.to_owned()))
    }

    /// What a text means.
    pub(crate) fn meaning<T>(
        &self,
        key: &str,
        read: impl FnOnce(&str) -> Result<T, JobError>,
    ) -> Result<Option<T>, JobError> {
        let text = self.text(key)?;
        self.point(key, text.map(|text| read(&text)).transpose())
    }

    pub(crate) fn integer(&self, key: &str) -> Result<Option<i64>, JobError> {
        let Some(item) = self.get(key) else { return Ok(None) };
        let number = item.as_integer();
        number.map(Some).ok_or_else(|| self.wrong_type(item, key, "a number"))
    }

    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, JobError> {
        let Some(item) = self.get(key) else { return Ok(None) };
        let flag = item.as_bool();
        flag.map(Some)
            .ok_or_else(|| self.wrong_type(item, key, "true or false"))
    }

    pub(crate) fn texts(&self, key: &str) -> Result<Option<Vec<String>>, JobError> {
        let meant = self.meanings(key, |text| Ok(text.to_owned()))?;
        meant.map(|texts| texts.into_iter().collect()).transpose()
    }

    /// What each text of a list means. That all of them are texts is looked at first.
    pub(crate) fn meanings<T>(
        &self,
        key: &str,
        read: impl Fn(&str) -> Result<T, JobError>,
    ) -> Result<Option<Vec<Result<T, JobError>>>, JobError> {
        let Some(item) = self.get(key) else { return Ok(None) };
        let array = item.as_array();
        let array = array.ok_or_else(|| self.wrong_type(item, key, "a list of texts"))?;
        let texts = array.iter().map(|value| Ok((value, self.argument(value)?)));
        let texts = texts.collect::<Result<Vec<_>, JobError>>()?.into_iter();
        let meant = texts.map(|(value, text)| read(text).map_err(|error| self.at_value(value, error)));
        Ok(Some(meant.collect()))
    }

    fn argument(&self, value: &'t Value) -> Result<&'t str, JobError> {
        value.as_str().ok_or_else(|| {
            let error = JobError::new(format!(
                "an argument must be a text, this is {}",
                article(value.type_name())
            ));
            let quoted = value.to_string();
            self.at_value(value, error.hint(format!("write \"{}\"", quoted.trim())))
        })
    }

    /// The texts of a table under a key, and what they are called there.
    pub(crate) fn texts_by_name(&self, key: &str) -> Result<Option<Vec<(String, String)>>, JobError> {
        let Some(table) = self.table(key, "a table of texts")? else {
            return Ok(None);
        };
        let texts = table.iter().map(|(name, value)| match value.as_str() {
            Some(text) => Ok((name.to_owned(), text.to_owned())),
            None => Err(self.wrong_type(value, &format!("{key}.{name}"), "a text")),
        });
        texts.collect::<Result<Vec<_>, _>>().map(Some)
    }

    /// The first key that is not known is an error.
    pub(crate) fn check_keys(&self, known: &[&str], place: &str) -> Result<(), JobError> {
        let mut unknown = self.unknown_keys(known, place);
        unknown.next().map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Every key that is not known is an error.
    pub(crate) fn check_all_keys(&self, known: &[&str], place: &str, errors: &mut JobErrors) {
        self.unknown_keys(known, place)
            .for_each(|(_, error)| errors.push(error));
    }

    /// The same; `elsewhere` says of keys of other tables where they belong.
    pub(crate) fn check_keys_and_places(
        &self,
        known: &[&str],
        place: &str,
        elsewhere: &dyn Fn(&str) -> Option<String>,
        errors: &mut JobErrors,
    ) {
        for (name, error) in self.unknown_keys(known, place) {
            errors.push(match elsewhere(name) {
                Some(hint) => error.hint(hint),
                None => error,
            });
        }
    }

    fn unknown_keys(&self, known: &[&str], place: &str) -> impl Iterator<Item = (&str, JobError)> {
        let names = self.iter().map(|(name, _)| name);
        names.filter(|name| !known.contains(name)).map(move |name| {
            let key = self.keys.get_key_value(name).and_then(|(key, _)| key.span());
            let hint = match nearest(name, known) {
                Some(near) => format!("did you mean '{near}'?"),
                None => format!("known keys: {}", known.join(", ")),
            };
            let error = JobError::new(format!("unknown key '{name}' in {place}"));
            (name, self.source.at(error.hint(hint), key.unwrap_or(0..0)))
        })
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
mod tests {
    use super::*;

    const TEXT: &str =
        "title = 5\n[part]\nwords = [\"one\", \"two\"]\n[part.names]\na = \"b\"\n[[each]]\n[[each]]\nn = 1\n";

    #[test]
    fn errors_point_at_the_key_the_value_or_the_table() {
        let source = Source::new(TEXT, "f");
        let document = source.read("file").unwrap();
        let top = Table::top(source, &document);
        let part = top.table("part", "a table").unwrap().unwrap();
        let each = top.tables("each").unwrap();
        let words = part.meanings("words", |word| match word {
            "two" => Err(JobError::new("no")),
            word => Ok(word.to_owned()),
        });
        let words: Result<Vec<String>, JobError> = words.unwrap().unwrap().into_iter().collect();
        let found = [
            top.text("title").unwrap_err(),
            part.at(JobError::new("no")),
            words.unwrap_err(),
            part.at_key("words", JobError::new("no")),
            part.at_key("none", JobError::new("no")),
            each[1].at_key("n", JobError::new("no")),
            each[1].check_keys(&["m"], "a list").unwrap_err(),
            top.tables("part").err().unwrap(),
        ];
        let expected = [
            "f:1:9: 'title' must be a text, this is an integer",
            "f:2:2: no",
            "f:3:17: no",
            "f:3:9: no",
            "f:2:2: no",
            "f:8:5: no",
            "f:8:1: unknown key 'n' in a list",
            "f:2:1: 'part' must be a list of tables",
        ];
        let shown = found.map(|error| error.to_string().lines().next().unwrap_or_default().to_owned());
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_is_not_there_is_no_error() {
        let source = Source::new(TEXT, "f");
        let document = source.read("file").unwrap();
        let top = Table::top(source, &document);
        assert_eq!(
            (top.text("x"), top.texts("x"), top.flag("x"), top.integer("x")),
            (Ok(None), Ok(None), Ok(None), Ok(None))
        );
        assert!(top.table("x", "a table").unwrap().is_none() && top.tables("x").unwrap().is_empty());
        let part = top.table("part", "a table").unwrap().unwrap();
        assert_eq!(
            part.texts_by_name("names"),
            Ok(Some(vec![("a".to_owned(), "b".to_owned())]))
        );
    }
}
