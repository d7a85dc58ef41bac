// SPDX-License-Identifier: Apache-2.0
//! What processes of other sites may open at a site beside the directories of the job, which its agent knows: what the
//! job names, its inputs and its outputs.

use crate::{output, outputs};
use isthmus_job::transfer::Location;
use isthmus_job::{Contact, Subjob};
use isthmus_stage::words;
use std::path::Path;

/// Paths as an agent takes them: absolute ones, those that begin with `~/`, and relative ones, below the working
/// directory. `here`: the user's directory; `scratch`: the scratch directory there.
pub(crate) fn paths(subjob: &Subjob, job: &str, here: &Path, scratch: Option<&str>) -> Vec<String> {
    let files = &subjob.files;
    let at_site = |path: &str| match path.starts_with('/') {
        true => path.to_owned(),
        // As it is placed there.
        false => format!("~/{path}"),
    };
    let given = files.given.iter().map(|given| at_site(&given.path));
    let taken = files.taken.iter().filter(|taken| taken.at_site);
    let taken = taken.map(|taken| at_site(&taken.path));
    let streams = ["stdin", "stdout", "stderr"].map(|name| output::Redirection::of(subjob, name).there());
    let mut paths: Vec<String> = files.shared.clone();
    paths.extend(scratch.map(str::to_owned));
    paths.extend(given.chain(taken).chain(streams).filter(|path| !path.is_empty()));
    if subjob.contact == Contact::Home {
        let placed = |path: &str| match path == "~" || path.starts_with("~/") {
            true => path.to_owned(),
            false => words::text(here.join(words::path(path))),
        };
        paths.extend(files.inputs.iter().filter_map(|input| match &input.source {
            Location::Home(path) => Some(placed(path)),
            _ => None,
        }));
        paths.push(words::text(here.join(outputs::results(files, job))));
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_job::Program;
    use isthmus_job::sites;
    use isthmus_job::transfer::{Given, Input, Taken};

    #[test]
    fn what_a_job_names_is_reached_and_its_inputs_at_home_are() {
        let mut subjob = sites::template(Program::one("./a"), vec![]);
        subjob.files.shared = vec!["/scratch".into(), "below".into()];
        let inputs = ["mesh.nc", "~/tables", "https://data.example.org/x"];
        subjob.files.inputs = inputs.iter().map(|text| Input::parse(text).unwrap()).collect();
        subjob.files.given = vec![Given {
            source: Location::Home("x".into()),
            path: "in/x".into(),
        }];
        let taken = |at_site, path: &str| Taken {
            path: path.into(),
            at_site,
            target: "y".into(),
        };
        subjob.files.taken = vec![taken(true, "/far/y"), taken(false, "own")];
        let told = |subjob: &Subjob| paths(subjob, "isthmus-7", Path::new("/u/run"), Some("/s"));
        let named = ["/scratch", "below", "/s", "~/in/x", "/far/y"];
        let at_home = ["/u/run/mesh.nc", "~/tables", "/u/run/isthmus-results/7"];
        assert_eq!(told(&subjob), [&named[..], &at_home].concat());
        subjob.contact = Contact::Ssh("lab".into());
        assert_eq!(told(&subjob), named);
    }
}
