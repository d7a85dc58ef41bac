// SPDX-License-Identifier: Apache-2.0
//! A manual page (section 3) for every function of `include/isthmus.h`: its prototype as it stands there, and what
//! `spec/requests.tsv` says about it.

use std::fs;
use std::path::Path;

use roff::{Roff, bold, roman};

use crate::spec::rows;
use crate::tree::{self, Result};

const HEADER: &str = "include/isthmus.h";
const ABOUT: &str = "spec/requests.tsv";

/// Writes all pages.
pub(super) fn write(directory: &Path) -> Result<()> {
    for (name, text) in pages(&prototypes(&tree::read(HEADER)?), &rows::<3>(ABOUT)?)? {
        let path = directory.join(format!("{name}.3"));
        fs::write(&path, text).map_err(|e| format!("{}: cannot write: {e}", path.display()))?;
    }
    Ok(())
}

/// Name and lines of each function of the header.
fn prototypes(header: &str) -> Vec<(String, Vec<String>)> {
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    let mut open = false;
    for line in header.lines() {
        let name = line
            .strip_prefix("int isthmus_")
            .and_then(|rest| rest.split('(').next());
        if let Some(name) = name {
            all.push((format!("isthmus_{name}"), Vec::new()));
            open = true;
        }
        if let (true, Some((_, lines))) = (open, all.last_mut()) {
            lines.push(line.to_owned());
            open = !line.ends_with(");");
        }
    }
    all
}

fn pages(prototypes: &[(String, Vec<String>)], about: &[[String; 3]]) -> Result<Vec<(String, String)>> {
    if let Some([name, ..]) = about
        .iter()
        .find(|[name, ..]| prototypes.iter().all(|(n, _)| n != name))
    {
        return Err(format!("{ABOUT}: {name} is not in {HEADER}"));
    }
    let page = |(name, lines): &(String, Vec<String>)| {
        let Some([_, summary, description]) = about.iter().find(|[of, ..]| of == name) else {
            return Err(format!("{ABOUT}: nothing about {name}"));
        };
        Ok((name.clone(), text(name, lines, summary, description)))
    };
    prototypes.iter().map(page).collect()
}

fn text(name: &str, lines: &[String], summary: &str, description: &str) -> String {
    let mut page = Roff::new();
    page.control("TH", [name, "3", "", "Isthmus", "Remote service requests"]);
    page.control("SH", ["NAME"])
        .text([roman(format!("{name} - {summary}"))]);
    page.control("SH", ["SYNOPSIS"]).control("nf", []);
    page.text([roman("#include <isthmus.h>")]);
    for line in lines {
        page.text([roman(line.as_str())]);
    }
    page.control("fi", []);
    page.control("SH", ["DESCRIPTION"]).text([roman(description)]);
    page.control("SH", ["ERRORS"]).text([roman(
        "The function gives MPI_SUCCESS or an error class of MPI. Before that the error handler of the communicator or window is \
         called, or that of MPI_COMM_SELF. ISTHMUS_WOULD_BLOCK is no error.",
    )]);
    page.control("SH", ["SEE ALSO"]);
    page.text([
        bold("isthmus"),
        roman("(1). The book has a chapter about remote service requests."),
    ]);
    page.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_of_the_header_has_a_page_with_its_prototype() {
        let header = tree::read(HEADER).expect("a header");
        let about = rows::<3>(ABOUT).expect("rows");
        let pages = pages(&prototypes(&header), &about).expect("pages");
        assert_eq!(pages.len(), header.matches("\nint isthmus_").count());
        let ask = &pages
            .iter()
            .find(|(name, _)| name == "isthmus_request_ask")
            .expect("it is there")
            .1;
        assert!(
            ask.contains("isthmus_handler handler, MPI_Comm comm, int flags, MPI_Request *request);"),
            "{ask}"
        );
        assert!(
            super::pages(&prototypes(&header), &about[1..]).is_err(),
            "one has no row"
        );
        assert!(
            super::pages(&prototypes(&header)[1..], &about).is_err(),
            "one is not in the header"
        );
    }
}
