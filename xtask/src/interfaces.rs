// SPDX-License-Identifier: Apache-2.0
//! `spec/procedures.tsv` and `spec/parameters.tsv`: procedures as each language sees them. What the columns mean stands
//! in `spec/README.md`.

use crate::spec::rows;
use crate::tree::Result;

/// One procedure that a language other than C has too.
pub(crate) struct Procedure {
    pub(crate) name: String,
    /// There is a version with large counts.
    pub(crate) large: bool,
    /// The interface has a second form with TYPE(C_PTR).
    pub(crate) pointer_overload: bool,
    languages: String,
    pub(crate) parameters: Vec<Parameter>,
}

/// One parameter.
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) direction: String,
    pub(crate) intent: Option<String>,
    /// What its length is if it is an array.
    pub(crate) length: Option<String>,
    /// Only the root's argument counts.
    pub(crate) root_only: bool,
    pub(crate) constant: bool,
    pub(crate) asynchronous: bool,
    /// The type of the function that is passed.
    pub(crate) callback: String,
    pub(crate) large_only: bool,
    /// A few words for people.
    pub(crate) meaning: String,
    languages: String,
}

impl Procedure {
    /// Whether the interface of this language has it.
    pub(crate) fn is_in(&self, language: &str) -> bool {
        self.languages.split(',').any(|l| l == language)
    }

    /// The parameters that this language has.
    pub(crate) fn parameters_in<'a>(&'a self, language: &'a str, large: bool) -> impl Iterator<Item = &'a Parameter> {
        let seen = move |p: &&Parameter| p.languages.split(',').any(|l| l == language) && (large || !p.large_only);
        self.parameters.iter().filter(seen)
    }
}

/// All procedures, callbacks and predefined functions left out.
pub(crate) fn load() -> Result<Vec<Procedure>> {
    let mut procedures: Vec<Procedure> = Vec::new();
    for [name, _result, languages, what, large, overload] in rows::<6>("spec/procedures.tsv")? {
        if what == "procedure" {
            procedures.push(Procedure {
                name,
                large: large == "yes",
                pointer_overload: overload == "yes",
                languages,
                parameters: Vec::new(),
            });
        }
    }
    for row in rows::<14>("spec/parameters.tsv")? {
        let [
            procedure,
            name,
            kind,
            direction,
            intent,
            length,
            root_only,
            _optional,
            constant,
            asynchronous,
            callback,
            languages,
            large_only,
            meaning,
        ] = row;
        let Some(owner) = procedures.iter_mut().find(|p| p.name == procedure) else {
            continue;
        };
        owner.parameters.push(Parameter {
            name,
            kind,
            direction,
            intent: (intent != "-").then_some(intent),
            length: (length != "-").then_some(length),
            root_only: root_only == "yes",
            constant: constant == "yes",
            asynchronous: asynchronous == "yes",
            callback,
            large_only: large_only == "yes",
            meaning,
            languages,
        });
    }
    Ok(procedures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Spec;

    #[test]
    fn the_tables_agree_with_the_functions_of_c() {
        let functions = Spec::load().unwrap().functions;
        // The C library has these in other forms: values, or nothing at all.
        let elsewhere =
            |name: &str| name.starts_with("MPI_Status_") || name.ends_with("_c2f") || name.ends_with("_f2c");
        for procedure in load().unwrap().iter().filter(|p| p.is_in("c") && !elsewhere(&p.name)) {
            let name = &procedure.name;
            let count = |name: &str| functions.iter().find(|f| f.name == name).map(|f| f.parameters.len());
            assert_eq!(count(name), Some(procedure.parameters_in("c", false).count()), "{name}");
            if procedure.large {
                let large = format!("{name}_c");
                assert_eq!(
                    count(&large),
                    Some(procedure.parameters_in("c", true).count()),
                    "{large}"
                );
            }
        }
    }
}
