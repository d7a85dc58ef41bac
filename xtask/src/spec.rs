// SPDX-License-Identifier: Apache-2.0
//! The tables of `spec/` as values. What the columns mean stands in `spec/README.md`.

use crate::tree::{self, Result};

/// One function of the ABI.
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) returns: String,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) chapter: String,
    pub(crate) since: String,
    flags: Vec<String>,
}

/// One parameter, as in C: `declaration` is the whole of it, `type_name` what stands before the name.
pub(crate) struct Parameter {
    pub(crate) declaration: String,
    pub(crate) type_name: String,
    pub(crate) name: String,
}

/// One row of `constants.tsv`: a constant, a type, a field or a callback type.
pub(crate) struct Constant {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) c_type: String,
    pub(crate) value: String,
    pub(crate) note: String,
}

/// One error class.
pub(crate) struct ErrorClass {
    pub(crate) name: String,
    pub(crate) value: i32,
    pub(crate) text: String,
}

/// One setting.
pub(crate) struct Setting {
    pub(crate) name: String,
    pub(crate) unit: String,
    /// The type and its bounds.
    pub(crate) kind: String,
    pub(crate) default: String,
    pub(crate) reason: String,
    pub(crate) scope: String,
    pub(crate) help: String,
}

/// All tables.
pub(crate) struct Spec {
    pub(crate) functions: Vec<Function>,
    /// Functions beside those of the ABI whose names begin with MPIX_, as other libraries have them.
    pub(crate) extensions: Vec<Function>,
    pub(crate) constants: Vec<Constant>,
    pub(crate) errors: Vec<ErrorClass>,
    pub(crate) settings: Vec<Setting>,
}

impl Spec {
    /// Reads and checks the tables.
    pub(crate) fn load() -> Result<Self> {
        let functions = |path| {
            rows::<7>(path)?
                .into_iter()
                .map(Function::from_row)
                .collect::<Result<Vec<_>>>()
        };
        let (functions, extensions) = (functions("spec/functions.tsv")?, functions("spec/extensions.tsv")?);
        let constants: Vec<Constant> = rows::<7>("spec/constants.tsv")?
            .into_iter()
            .map(Constant::from_row)
            .collect();
        let errors = error_classes(&constants)?;
        let settings = settings()?;
        Ok(Self {
            functions,
            extensions,
            constants,
            errors,
            settings,
        })
    }

    /// Constants of one kind.
    pub(crate) fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Constant> {
        self.constants.iter().filter(move |c| c.kind == kind)
    }
}

impl Function {
    /// Whether the table gives the function this flag.
    pub(crate) fn has_flag(&self, flag: &str) -> bool {
        self.flags.iter().any(|f| f == flag)
    }

    /// Whether the result is a value rather than an error code.
    pub(crate) fn returns_value(&self) -> bool {
        self.has_flag("returns-value")
    }

    /// The parameter list as C wants it.
    pub(crate) fn c_parameters(&self) -> String {
        if self.parameters.is_empty() {
            return "void".to_owned();
        }
        let declarations: Vec<&str> = self.parameters.iter().map(|p| p.declaration.as_str()).collect();
        declarations.join(", ")
    }

    fn from_row(row: [String; 7]) -> Result<Self> {
        let [name, returns, parameters, chapter, _number, since, flags] = row;
        let parameters = match parameters.as_str() {
            "(none)" => Vec::new(),
            list => list
                .split("; ")
                .map(|p| Parameter::parse(p).ok_or_else(|| format!("{name}: parameter `{p}`")))
                .collect::<Result<_>>()?,
        };
        let flags = flags.split(',').map(str::to_owned).collect();
        Ok(Self {
            name,
            returns,
            parameters,
            chapter,
            since,
            flags,
        })
    }
}

impl Parameter {
    /// Splits a C declaration.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text == "..." {
            return Some(Self {
                declaration: text.to_owned(),
                type_name: text.to_owned(),
                name: String::new(),
            });
        }
        let before_bounds = text.split('[').next()?;
        let start = before_bounds.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_')? + 1;
        let name = before_bounds.get(start..)?.to_owned();
        let type_name = before_bounds.get(..start)?.trim().to_owned();
        (!name.is_empty() && !type_name.is_empty()).then(|| Self {
            declaration: text.to_owned(),
            type_name,
            name,
        })
    }
}

impl Constant {
    fn from_row(row: [String; 7]) -> Self {
        let [name, kind, c_type, value, _hex, _since, note] = row;
        Self {
            name,
            kind,
            c_type,
            value,
            note,
        }
    }
}

fn settings() -> Result<Vec<Setting>> {
    let mut all: Vec<Setting> = Vec::new();
    for [name, unit, kind, default, reason, scope, help] in rows::<7>("spec/settings.tsv")? {
        if all.iter().any(|known| known.name == name) {
            return Err(format!("spec/settings.tsv: {name} has two rows"));
        }
        all.push(Setting {
            name,
            unit,
            kind,
            default,
            reason,
            scope,
            help,
        });
    }
    Ok(all)
}

fn error_classes(constants: &[Constant]) -> Result<Vec<ErrorClass>> {
    let texts = rows::<2>("spec/errors.tsv")?;
    let mut classes = Vec::new();
    for constant in constants
        .iter()
        .filter(|c| c.kind.starts_with("error-class") && c.name != "MPI_ERR_LASTCODE")
    {
        let text = texts
            .iter()
            .find(|[name, _]| *name == constant.name)
            .map(|[_, text]| text.clone());
        let text = text.ok_or_else(|| format!("spec/errors.tsv: no text for {}", constant.name))?;
        let value = constant
            .value
            .parse()
            .map_err(|_| format!("spec/constants.tsv: {}: value", constant.name))?;
        classes.push(ErrorClass {
            name: constant.name.clone(),
            value,
            text,
        });
    }
    if classes.len() != texts.len() {
        return Err("spec/errors.tsv: names a class that constants.tsv does not have".to_owned());
    }
    Ok(classes)
}

/// Rows of a table after its heading, each with exactly `N` columns.
pub(crate) fn rows<const N: usize>(path: &str) -> Result<Vec<[String; N]>> {
    let text = tree::read(path)?;
    let mut all = Vec::new();
    for (number, line) in text.lines().enumerate().skip(1) {
        let columns: Vec<String> = line.split('\t').map(str::to_owned).collect();
        let count = columns.len();
        let row = columns
            .try_into()
            .map_err(|_| format!("{path}:{}: {count} columns instead of {N}", number + 1))?;
        all.push(row);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_split_into_type_and_name() {
        let p = Parameter::parse("int ranges[][3]").unwrap();
        assert_eq!((p.type_name.as_str(), p.name.as_str()), ("int", "ranges"));
        let p = Parameter::parse("char ***argv").unwrap();
        assert_eq!((p.type_name.as_str(), p.name.as_str()), ("char ***", "argv"));
        assert!(Parameter::parse("int").is_none());
    }

    #[test]
    fn the_tables_are_whole() {
        let spec = Spec::load().unwrap();
        assert_eq!(spec.functions.len(), 662);
        assert_eq!(spec.errors.len(), 84);
        assert!(
            spec.extensions
                .iter()
                .all(|function| function.name.starts_with("MPIX_"))
        );
    }
}
