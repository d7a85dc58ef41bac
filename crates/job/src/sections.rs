// SPDX-License-Identifier: Apache-2.0
//! The programs of a subjob: each has a section of its ranks.

use crate::error::JobError;
use crate::program::{MAX_SECTIONS, Section, keep_last};
use crate::subjob::{MAX_PROCESSES_PER_MACHINE, Subjob};

impl Subjob {
    /// Its sections, each with its number of processes.
    pub fn sections(&self) -> impl Iterator<Item = (&Section, u32)> {
        let ends = self.sections.iter().skip(1).map(|next| next.first);
        let ends = ends.chain([self.count]);
        self.sections
            .iter()
            .zip(ends)
            .map(|(section, end)| (section, end.saturating_sub(section.first)))
    }

    /// All its programs, of all architectures.
    pub fn programs(&self) -> impl Iterator<Item = &String> {
        self.sections.iter().flat_map(|section| section.program.paths())
    }

    /// The same, to be changed.
    pub fn programs_mut(&mut self) -> impl Iterator<Item = &mut String> {
        self.sections.iter_mut().flat_map(|section| section.program.paths_mut())
    }

    /// Where each of its programs begins, and the program's number (MPI_APPNUM).
    pub fn numbers(&self) -> Vec<(u32, u32)> {
        self.sections.iter().map(|s| (s.first, s.appnum)).collect()
    }

    /// Whether another subjob, which follows on it, can be one with it: what concerns the machine must be the same for
    /// both. Among that are all our own settings, on which the processes of a node must agree.
    fn is_joinable(&self, next: &Self) -> bool {
        let place = |s: &Self| (s.contact.clone(), s.lan.clone(), s.forks, s.stage);
        let settings = |s: &Self| {
            let mut all = s.environment.clone();
            keep_last(&mut all);
            all.retain(|(name, _)| is_own(name));
            all.sort();
            all
        };
        self.request("jobType") != Some("single")
            && place(self) == place(next)
            && self.allocation == next.allocation
            && (&self.requests, &self.setup, &self.files) == (&next.requests, &next.setup, &next.files)
            && settings(self) == settings(next)
    }

    /// Its sections with all that holds for them.
    fn spelled_out(&self) -> Vec<Section> {
        let mut sections = self.sections.clone();
        for section in &mut sections {
            let own = std::mem::take(&mut section.environment);
            section.environment = self.environment.iter().cloned().chain(own).collect();
            keep_last(&mut section.environment);
            section.directory = below(self.directory.as_deref(), section.directory.as_deref());
        }
        sections
    }

    /// What is the same for all sections stands once, in the subjob.
    pub(crate) fn settle(&mut self) {
        keep_last(&mut self.environment);
        let [first, rest @ ..] = &self.sections[..] else { return };
        let mut shared = first.environment.clone();
        keep_last(&mut shared);
        shared.retain(|variable| rest.iter().all(|other| other.environment.contains(variable)));
        let directory = first.directory.clone();
        let is_shared = directory.is_some() && rest.iter().all(|other| other.directory == directory);
        for section in &mut self.sections {
            keep_last(&mut section.environment);
            section.environment.retain(|variable| !shared.contains(variable));
            if is_shared {
                section.directory = None;
            }
        }
        if is_shared {
            self.directory = below(self.directory.as_deref(), directory.as_deref());
        }
        self.environment.extend(shared);
        keep_last(&mut self.environment);
    }

    /// A subjob for each of its sections.
    pub(crate) fn apart(&self) -> Vec<Self> {
        let counts = self.sections().map(|(_, count)| count);
        let apart = self.spelled_out().into_iter().zip(counts).map(|(section, count)| Self {
            count,
            environment: section.environment,
            directory: section.directory,
            sections: vec![Section {
                first: 0,
                environment: Vec::new(),
                directory: None,
                ..section
            }],
            ..self.clone()
        });
        apart.collect()
    }

    /// What is wrong with its sections.
    pub(crate) fn check_sections(&self) -> Result<(), JobError> {
        let site = &self.site;
        if self.sections.is_empty() {
            return Err(JobError::new(format!("site '{site}' has no program to run")));
        }
        if self.sections.len() > MAX_SECTIONS {
            let problem = format!("site '{site}' has more than {MAX_SECTIONS} programs");
            return Err(JobError::new(problem).hint("let one program choose by its rank what it does"));
        }
        let in_order = self.sections[0].first == 0 && self.sections.is_sorted_by(|a, b| a.first < b.first);
        if !in_order || self.sections().any(|(_, count)| count == 0) {
            let problem = format!("site '{site}': every program needs one process at least");
            return Err(JobError::new(problem).hint("leave out the program, or give it a count"));
        }
        for section in &self.sections {
            if section.program.paths().next().is_none() {
                return Err(JobError::new(format!("site '{site}' has no program to run")));
            }
            if section.program.paths().any(String::is_empty) {
                let problem = format!("site '{site}': the name of the program is empty");
                return Err(JobError::new(problem).hint("a variable of the shell in its place may not be set"));
            }
            if let Some((name, _)) = section.environment.iter().find(|(name, _)| is_own(name)) {
                let problem = format!("site '{site}': {name} cannot be set for one program of several");
                let hint = "the processes of a machine must agree on it: set it for the whole subjob, or make a subjob of the program";
                return Err(JobError::new(problem).hint(hint));
            }
        }
        Ok(())
    }
}

/// Whether a variable is one of our settings.
fn is_own(name: &str) -> bool {
    name.starts_with(isthmus_settings::PREFIX)
}

/// A directory of a section of a subjob with this one.
fn below(subjob: Option<&str>, section: Option<&str>) -> Option<String> {
    match (subjob, section) {
        (Some(above), Some(own)) if !own.starts_with(['/', '~']) => Some(format!("{above}/{own}")),
        (above, own) => own.or(above).map(str::to_owned),
    }
}

/// Subjobs in their order, where neighbours that can be one are one. The name is that of the first.
pub fn joined(subjobs: Vec<Subjob>) -> Vec<Subjob> {
    let mut groups: Vec<(u32, Vec<Subjob>)> = Vec::new();
    for next in subjobs {
        match groups.last_mut() {
            Some((count, group))
                if next.count <= MAX_PROCESSES_PER_MACHINE - *count
                    && group.len() < MAX_SECTIONS
                    && group[0].is_joinable(&next) =>
            {
                *count += next.count;
                group.push(next);
            }
            _ => groups.push((next.count.min(MAX_PROCESSES_PER_MACHINE), vec![next])),
        }
    }
    groups.into_iter().filter_map(|(_, group)| one(group)).collect()
}

/// One subjob of several, which have a program each.
fn one(mut group: Vec<Subjob>) -> Option<Subjob> {
    if group.len() < 2 {
        return group.pop();
    }
    let (mut sections, mut count) = (Vec::with_capacity(group.len()), 0);
    for subjob in &group {
        sections.extend(subjob.spelled_out().into_iter().map(|section| Section {
            first: section.first + count,
            ..section
        }));
        count += subjob.count;
    }
    let mut one = Subjob {
        count,
        sections,
        environment: Vec::new(),
        directory: None,
        ..group.swap_remove(0)
    };
    one.settle();
    Some(one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Job;
    use crate::model::tests::subjob;
    use crate::program::Program;

    fn running(program: &str, count: u32, variables: &[(&str, &str)]) -> Subjob {
        let mut one = subjob("home", count);
        one.sections = vec![Section::only(Program::one(program), Vec::new())];
        let pairs = variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
        one.environment = pairs.collect();
        one
    }

    #[test]
    fn neighbours_at_one_place_are_one_subjob() {
        let parts = vec![
            running("./atm", 3, &[("A", "1"), ("B", "2")]),
            running("./ocn", 2, &[("A", "1"), ("B", "3")]),
            running("./ice", 1, &[("A", "1")]),
        ];
        let mut all = joined(parts.clone());
        let one = all.pop().unwrap();
        assert!(all.is_empty());
        assert_eq!(one.count, 6);
        let shown: Vec<_> = one.sections().map(|(s, n)| (s.first, n, s.environment.len())).collect();
        assert_eq!(shown, [(0, 3, 1), (3, 2, 1), (5, 1, 0)]);
        assert_eq!(one.environment, [("A".to_owned(), "1".to_owned())]);
        assert_eq!(one.apart().len(), 3);
        for (apart, part) in one.apart().into_iter().zip(parts) {
            assert_eq!(apart, part);
        }
    }

    #[test]
    fn what_concerns_the_machine_keeps_subjobs_apart() {
        let first = || running("./a", 1, &[]);
        let mut others = vec![
            running("./b", 1, &[("ISTHMUS_BIND_TO", "core")]),
            first(),
            first(),
            first(),
        ];
        others[1].contact = crate::model::Contact::Ssh("b".to_owned());
        others[2].stage = false;
        others[3].count = MAX_PROCESSES_PER_MACHINE;
        for other in others {
            assert_eq!(joined(vec![first(), other]).len(), 2);
        }
        let set = |value| running("./a", 1, &[("ISTHMUS_BIND_TO", value)]);
        assert_eq!(joined(vec![set("core"), set("core")]).len(), 1);
    }

    #[test]
    fn directories_are_those_of_their_programs() {
        let at = |directory: Option<&str>| Subjob {
            directory: directory.map(str::to_owned),
            ..running("./a", 1, &[])
        };
        let one = joined(vec![at(Some("x")), at(Some("x"))]).remove(0);
        assert_eq!(
            (one.directory.as_deref(), &one.sections[1].directory),
            (Some("x"), &None)
        );
        let two = joined(vec![at(Some("x")), at(None)]).remove(0);
        assert_eq!(
            (two.directory.as_deref(), two.sections[0].directory.as_deref()),
            (None, Some("x"))
        );
    }

    #[test]
    fn sections_are_checked() {
        let refusal = |change: &dyn Fn(&mut Subjob)| {
            let mut all = joined(vec![running("./a", 1, &[]), running("./b", 1, &[])]);
            change(&mut all[0]);
            Job::new(all).unwrap_err().to_string()
        };
        assert!(refusal(&|s| s.sections.clear()).contains("no program"));
        assert!(refusal(&|s| s.sections[1].first = 2).contains("one process at least"));
        assert!(refusal(&|s| s.sections[1].first = 0).contains("one process at least"));
        assert!(refusal(&|s| s.sections[1].program = Program::one("")).contains("is empty"));
        let setting = ("ISTHMUS_STATS".to_owned(), "1".to_owned());
        let refused = refusal(&|s| s.sections[1].environment.push(setting.clone()));
        assert!(refused.contains("ISTHMUS_STATS cannot be set for one program"));
    }
}
