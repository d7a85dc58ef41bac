// SPDX-License-Identifier: Apache-2.0
//! A manual page (section 3) for every function of the ABI, made from `spec/` when the distribution is laid out.
//! A function with large counts (`MPI_X_c`) shares the page of `MPI_X`.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use roff::{Inline, Roff, bold, italic, roman};

use super::fortran;
use crate::interfaces::{self, Parameter, Procedure};
use crate::spec::{Function, Spec, rows};
use crate::tree::Result;

/// Writes all pages; those of a previous version that are no longer made are left to who installs.
pub(super) fn write(spec: &Spec, bodies: &BTreeSet<String>, directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).map_err(|e| format!("{}: cannot make it: {e}", directory.display()))?;
    for (name, text) in pages(spec, bodies)? {
        let path = directory.join(format!("{name}.3"));
        fs::write(&path, text).map_err(|e| format!("{}: cannot write: {e}", path.display()))?;
    }
    Ok(())
}

/// Name and text of each page.
fn pages(spec: &Spec, bodies: &BTreeSet<String>) -> Result<Vec<(String, String)>> {
    let summaries: HashMap<String, String> = rows::<2>("spec/summaries.tsv")?
        .into_iter()
        .map(|[name, summary]| (name, summary))
        .collect();
    if let Some(name) = summaries.keys().find(|name| function(spec, name).is_none()) {
        return Err(format!("spec/summaries.tsv: {name} is no function of the ABI"));
    }
    let procedures: HashMap<String, Procedure> = interfaces::load()?.into_iter().map(|p| (p.name.clone(), p)).collect();
    let in_fortran = fortran::shown(spec)?;
    let mut pages = Vec::new();
    for function in spec.functions.iter().chain(&spec.extensions) {
        if let Some(small) = twin(spec, &function.name) {
            pages.push((function.name.clone(), format!(".so man3/{}.3\n", small.name)));
            continue;
        }
        let summary = summary(&function.name, &summaries)
            .ok_or_else(|| format!("spec/summaries.tsv: nothing about {}", function.name))?;
        let page = Page {
            spec,
            function,
            summary: &summary,
            procedure: procedures.get(&function.name),
            in_fortran: in_fortran.get(&function.name),
            implemented: bodies.contains(&function.name),
        };
        pages.push((function.name.clone(), page.text()));
    }
    Ok(pages)
}

fn function<'a>(spec: &'a Spec, name: &str) -> Option<&'a Function> {
    let all = spec.functions.iter().chain(&spec.extensions);
    all.into_iter().find(|f| f.name == name)
}

/// The function with int counts, of one with large ones.
fn twin<'a>(spec: &'a Spec, name: &str) -> Option<&'a Function> {
    function(spec, name.strip_suffix("_c")?)
}

/// The blocking function, of a nonblocking or persistent one: `MPI_Ibcast` and `MPI_Bcast_init` have `MPI_Bcast`.
fn blocking(name: &str) -> Option<(String, &'static str)> {
    let short = name.strip_prefix("MPI_")?;
    if let Some(base) = short.strip_suffix("_init") {
        return Some((format!("MPI_{base}"), "make a persistent request to"));
    }
    let mut letters = short.strip_prefix('I')?.chars();
    let first = letters.next()?.to_ascii_uppercase();
    Some((format!("MPI_{first}{}", letters.as_str()), "begin to"))
}

fn summary(name: &str, summaries: &HashMap<String, String>) -> Option<String> {
    if let Some(own) = summaries.get(name) {
        return Some(own.clone());
    }
    if name.ends_with("_toint") {
        return Some("convert a handle to an integer".to_owned());
    }
    if name.ends_with("_fromint") {
        return Some("convert an integer to a handle".to_owned());
    }
    let (base, how) = blocking(name)?;
    Some(format!("{how} {}", summaries.get(&base)?))
}

struct Page<'a> {
    spec: &'a Spec,
    function: &'a Function,
    summary: &'a str,
    /// As the languages see it; functions for C alone may have none.
    procedure: Option<&'a Procedure>,
    /// With `mpi_f08`, and with `mpi` and `mpif.h`.
    in_fortran: Option<&'a [Vec<String>; 2]>,
    implemented: bool,
}

impl Page<'_> {
    fn text(&self) -> String {
        let name = &self.function.name;
        let mut page = Roff::new();
        page.control("TH", [name.as_str(), "3", "", "Isthmus", "MPI functions"]);
        page.control("SH", ["NAME"]);
        page.text([roman(format!("{name} - {}", self.summary))]);
        self.synopsis(&mut page);
        self.parameters(&mut page);
        page.control("SH", ["DESCRIPTION"]);
        for paragraph in self.description() {
            page.control("PP", []).text([roman(paragraph)]);
        }
        page.control("SH", ["ERRORS"]).text([roman(self.errors())]);
        page.control("SH", ["SEE ALSO"]).text(self.see_also());
        page.render()
    }

    fn synopsis(&self, page: &mut Roff) {
        page.control("SH", ["SYNOPSIS"]);
        let large = function(self.spec, &format!("{}_c", self.function.name));
        let header = match self.function.name.starts_with("MPIX_") {
            true => "mpi-ext.h",
            false => "mpi.h",
        };
        let mut c = vec![format!("#include <{header}>")];
        for function in [Some(self.function), large].into_iter().flatten() {
            c.extend(wrapped(&format!(
                "{} {}({});",
                function.returns,
                function.name,
                function.c_parameters()
            )));
        }
        listing(page, "C", &c);
        if let Some([f08, f90]) = self.in_fortran {
            for (heading, lines) in [
                ("Fortran, use mpi_f08", f08),
                ("Fortran, use mpi or include 'mpif.h'", f90),
            ] {
                let lines: Vec<String> = lines.iter().flat_map(|line| wrapped(line)).collect();
                listing(page, heading, &lines);
            }
        }
    }

    fn parameters(&self, page: &mut Roff) {
        let Some(procedure) = self.procedure else { return };
        let shown = |p: &&Parameter| p.name != "ierror" && !p.meaning.is_empty() && p.meaning != "-";
        let parameters: Vec<&Parameter> = procedure.parameters.iter().filter(shown).collect();
        if parameters.is_empty() {
            return;
        }
        page.control("SH", ["PARAMETERS"]);
        for parameter in parameters {
            page.control("TP", []);
            page.text([bold(&parameter.name), roman(format!(" ({})", parameter.direction))]);
            // Dashes of TeX.
            let mut meaning = parameter.meaning.replace("---", " - ");
            if parameter.root_only && !meaning.contains("root") {
                meaning.push_str(" (significant at the root only)");
            }
            if parameter.large_only {
                meaning.push_str(" (only in the function with large counts)");
            }
            page.text([roman(meaning)]);
        }
    }

    fn description(&self) -> Vec<String> {
        let name = &self.function.name;
        let mut paragraphs = Vec::new();
        if self.implemented {
            let mut first = self.summary.chars();
            let capital = first.next().map(|c| c.to_ascii_uppercase()).into_iter();
            paragraphs.push(format!("{}{}.", capital.collect::<String>(), first.as_str()));
        } else {
            paragraphs.push(
                "Isthmus does not have this function yet. It can be linked; a call raises MPI_ERR_UNSUPPORTED_OPERATION and names the function."
                    .to_owned(),
            );
        }
        if self.function.has_flag("nonblocking") {
            paragraphs.push(
                "The call returns at once and gives a request. The operation ends when MPI_Wait, MPI_Test or a function like them says so. \
                 Until then, do not change a buffer that is sent and do not read one that is received into."
                    .to_owned(),
            );
        }
        if self.function.has_flag("persistent") {
            paragraphs.push(
                "The request is inactive at first. MPI_Start and MPI_Startall begin the operation, as often as you like; MPI_Wait and MPI_Test \
                 end it; MPI_Request_free frees the request."
                    .to_owned(),
            );
        }
        for version in ["2", "4", "4.1"] {
            if self.function.has_flag(&format!("deprecated-{version}")) {
                paragraphs.push(format!("{name} is deprecated since MPI {version}."));
            }
        }
        if function(self.spec, &format!("{name}_c")).is_some() {
            paragraphs.push(format!(
                "{name}_c takes counts of type MPI_Count. In mpi_f08 both have one name; the kind of the integers decides."
            ));
        }
        paragraphs
    }

    fn errors(&self) -> &'static str {
        if self.function.returns_value() {
            return "The function gives its result as its value.";
        }
        if self.function.name.starts_with("MPI_T_") {
            return "The function gives MPI_SUCCESS or an error code (MPI_T_ERR_...). Errors of the tool interface call no error handler.";
        }
        "The function gives MPI_SUCCESS or an error code, in Fortran in ierror. Before that the error handler is called; the one \
         that is set at first ends the job. MPI_Error_string gives the text of a code."
    }

    fn see_also(&self) -> Vec<Inline> {
        let name = &self.function.name;
        let short = name.strip_prefix("MPI_").unwrap_or(name);
        let mut lower = short.chars();
        let begun = lower
            .next()
            .map(|c| format!("MPI_I{}{}", c.to_ascii_lowercase(), lower.as_str()));
        let mut names: Vec<String> = begun.into_iter().chain([format!("{name}_init")]).collect();
        names.extend(blocking(name).map(|(base, _)| base));
        let ends = ["MPI_Wait", "MPI_Test"].map(str::to_owned);
        if self.function.has_flag("nonblocking") {
            names.extend(ends);
        } else if self.function.has_flag("persistent") {
            names.extend(["MPI_Start".to_owned()].into_iter().chain(ends));
        }
        names.retain(|other| other != name && function(self.spec, other).is_some());
        let mut inlines = Vec::new();
        for (page, section) in names
            .iter()
            .map(|n| (n.as_str(), 3))
            .chain([("isthmus", 1), ("mpicc", 1)])
        {
            if !inlines.is_empty() {
                inlines.push(roman(", "));
            }
            inlines.extend([italic(page), roman(format!("({section})"))]);
        }
        inlines.push(roman(match name.starts_with("MPIX_") {
            true => ". Not part of MPI 5.0. The book: When a part of the job is lost (faults.md).".to_owned(),
            false => format!(". MPI 5.0: the chapter about {}.", chapter(&self.function.chapter)),
        }));
        inlines
    }
}

/// A call in lines that fit a terminal of 80 columns beside the margin of the page, broken between arguments.
fn wrapped(call: &str) -> Vec<String> {
    const WIDTH: usize = 72;
    let mut lines: Vec<String> = Vec::new();
    for argument in call.split(", ") {
        match lines.last_mut() {
            Some(line) if line.len() + argument.len() + 2 <= WIDTH => {
                line.push_str(", ");
                line.push_str(argument);
            }
            Some(line) => {
                line.push(',');
                lines.push(format!("    {argument}"));
            }
            None => lines.push(argument.to_owned()),
        }
    }
    lines
}

/// Lines as they are, with a heading; nothing for no lines.
fn listing(page: &mut Roff, heading: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    page.control("SS", [heading]).control("nf", []);
    for line in lines {
        page.text([roman(line)]);
    }
    page.control("fi", []);
}

/// A chapter of the standard, in words.
fn chapter(short: &str) -> &str {
    match short {
        "abi" => "the application binary interface",
        "collectives" => "collective communication",
        "comm" => "groups, contexts and communicators",
        "deprecated" => "deprecated interfaces",
        "dynamic" => "process creation and management",
        "environment" => "environmental management",
        "errhandler" => "error handling",
        "external" => "external interfaces",
        "info" => "the info object",
        "io" => "I/O",
        "p2p" => "point-to-point communication",
        "partitioned" => "partitioned communication",
        "profiling" => "the profiling interface",
        "rma" => "one-sided communications",
        "tools" => "tool support",
        "topology" => "virtual topologies",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_a_page_and_says_whether_it_is_there() {
        let spec = Spec::load().unwrap();
        let bodies = BTreeSet::from(["MPI_Ibcast".to_owned()]);
        let pages: HashMap<String, String> = pages(&spec, &bodies).unwrap().into_iter().collect();
        assert_eq!(pages.len(), spec.functions.len() + spec.extensions.len());
        let page = &pages["MPI_Ibcast"];
        for part in [
            r"MPI_Ibcast \- begin to send data from one process",
            "int MPI_Ibcast_c(void *buffer, MPI_Count count, MPI_Datatype datatype,\n    int root",
            "type(*), dimension(..), asynchronous :: buffer",
            "<type> :: buffer(*)",
            "The call returns at once",
            r"\fIMPI_Bcast\fR(3)",
        ] {
            assert!(page.contains(part), "{part}:\n{page}");
        }
        assert!(pages["MPI_Put"].contains("does not have this function yet"));
        assert_eq!(pages["MPI_Send_c"], ".so man3/MPI_Send.3\n");
    }
}
