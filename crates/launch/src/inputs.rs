// SPDX-License-Identifier: Apache-2.0
//! The input of all subjobs: which streams there are, who reads which, and how much each may be sent.

use crate::happening::Event;
use crate::input::{InputTo, Source};
use crate::output::Redirection;
use isthmus_job::{Contact, Subjob};
use isthmus_wire::grid::Input;
use tokio::sync::mpsc;

/// See the module.
#[derive(Debug)]
pub(crate) struct Inputs {
    /// Who gets our standard input.
    to: InputTo,
    /// Files of subjobs, and at the end our standard input.
    sources: Vec<Source>,
}

impl Inputs {
    pub(crate) fn new(to: InputTo) -> Self {
        Self {
            to,
            sources: Vec::new(),
        }
    }

    /// Decides who reads what: its own file, or a share of ours. `firsts`: numbers of the first processes.
    pub(crate) fn deal(&mut self, subjobs: &[Subjob], firsts: &[u32]) -> Vec<Input> {
        let mut inputs = Vec::with_capacity(subjobs.len());
        let mut ours = Vec::new();
        for (site, (subjob, first)) in subjobs.iter().zip(firsts).enumerate() {
            let index = |rank: u32| rank.checked_sub(*first).filter(|index| *index < subjob.count);
            let place = Redirection::of(subjob, "stdin");
            let input = match (&place, self.to) {
                // What is typed at the terminal of another part.
                _ if matches!(subjob.contact, Contact::Part(_)) => Input::Nobody,
                (Redirection::There(_), _) | (Redirection::Here, InputTo::Nobody) => Input::Nobody,
                (Redirection::File(_), _) | (Redirection::Here, InputTo::All) => Input::All,
                (Redirection::Here, InputTo::First) => index(0).map_or(Input::Nobody, Input::One),
                (Redirection::Here, InputTo::Rank(rank)) => index(rank).map_or(Input::Nobody, Input::One),
            };
            match place {
                Redirection::File(path) => self.sources.push(Source::new(Some(path), [site])),
                _ if input != Input::Nobody => ours.push(site),
                _ => {}
            }
            inputs.push(input);
        }
        self.sources.push(Source::new(None, ours));
        inputs
    }

    /// The input of a subjob that begins again, whose first process has this number.
    pub(crate) fn again(&self, site: usize, first: u32) -> Input {
        match self.to {
            _ if !self.sources.iter().any(|s| s.is_for(site)) => Input::Nobody,
            InputTo::Rank(rank) => Input::One(rank.saturating_sub(first)),
            InputTo::First => Input::One(0),
            InputTo::All | InputTo::Nobody => Input::All,
        }
    }

    /// A subjob runs: its input may begin once all who share it run.
    pub(crate) fn start(&mut self, site: usize, runs: impl Fn(usize) -> bool, events: &mpsc::UnboundedSender<Event>) {
        for (number, source) in self.sources.iter_mut().enumerate() {
            if source.is_for(site) && source.readers().all(&runs) {
                source.start(number, events);
            }
        }
    }

    /// Whether a source reads what is typed at our terminal.
    pub(crate) fn is_typed(&self, source: usize) -> bool {
        self.sources[source].is_typed()
    }

    /// A piece has been read, and was meant for somebody else.
    pub(crate) fn pass_over(&mut self, source: usize) {
        self.sources[source].pass_over();
    }

    /// A piece has been read: for these subjobs. An empty one is the end.
    pub(crate) fn take(&mut self, source: usize, bytes: usize) -> Vec<usize> {
        let source = &mut self.sources[source];
        source.take(bytes);
        source.readers().collect()
    }

    /// Somebody else has read this at our terminal: for these subjobs.
    pub(crate) fn take_typed(&mut self, bytes: usize) -> Vec<usize> {
        let Some(source) = self.sources.iter_mut().find(|s| s.is_typed()) else {
            return Vec::new();
        };
        source.charge(bytes);
        source.readers().collect()
    }

    /// A subjob has taken so many bytes.
    pub(crate) fn add_credit(&mut self, site: usize, bytes: usize) {
        let sources = self.sources.iter_mut().filter(|s| s.is_for(site));
        sources.for_each(|s| s.add_credit(site, bytes));
    }

    /// Whether a subjob has not taken all that was sent to it.
    pub(crate) fn owes(&self, site: usize) -> bool {
        self.sources.iter().any(|source| source.owes(site))
    }

    /// A subjob is no longer there. Whether nobody else reads what was for it.
    pub(crate) fn remove(&mut self, site: usize) -> bool {
        let alone = self.sources.iter().any(|s| s.readers().eq([site]));
        self.sources.iter_mut().for_each(|s| s.remove(site));
        alone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_job::{Program, sites};

    fn subjobs() -> Vec<Subjob> {
        let specs = ["home:2", "lab:3"].map(|s| sites::SiteSpec::parse(s).unwrap());
        let template = sites::template(Program::one("./x"), Vec::new());
        let job = sites::job_of_sites(&specs, None, &template).unwrap();
        job.subjobs().to_vec()
    }

    fn dealt(to: InputTo) -> (Inputs, Vec<Input>) {
        let mut inputs = Inputs::new(to);
        let dealt = inputs.deal(&subjobs(), &[0, 2]);
        (inputs, dealt)
    }

    #[test]
    fn our_standard_input_goes_to_whom_it_is_for() {
        for (to, expected) in [
            (InputTo::Nobody, [Input::Nobody, Input::Nobody]),
            (InputTo::First, [Input::One(0), Input::Nobody]),
            (InputTo::Rank(3), [Input::Nobody, Input::One(1)]),
            (InputTo::Rank(5), [Input::Nobody, Input::Nobody]),
            (InputTo::All, [Input::All, Input::All]),
        ] {
            assert_eq!(dealt(to).1, expected, "{to:?}");
        }
    }

    #[test]
    fn a_subjob_that_begins_again_reads_what_it_read() {
        let (inputs, _) = dealt(InputTo::Rank(3));
        assert_eq!((inputs.again(0, 0), inputs.again(1, 2)), (Input::Nobody, Input::One(1)));
        assert_eq!(inputs.again(1, 0), Input::One(3), "the subjob before it was dropped");
    }

    #[test]
    fn who_is_gone_neither_reads_nor_owes() {
        let (mut inputs, _) = dealt(InputTo::All);
        assert_eq!(inputs.take(0, 10), [0, 1]);
        assert!(inputs.owes(1));
        inputs.add_credit(1, 10);
        assert!(!inputs.owes(1) && inputs.owes(0));
        assert!(!inputs.remove(0), "the other one still reads");
        assert_eq!((inputs.take(0, 10), inputs.owes(0)), (vec![1], false));
        assert!(inputs.remove(1), "nobody does");
    }
}
