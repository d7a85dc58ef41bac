// SPDX-License-Identifier: Apache-2.0
//! What a process asks about its ways, and what comes of it where none can lead to it.

use super::MeetingHost;
use super::beyond::{Spot, without_ways};
use crate::happening::Process;
use isthmus_wire::question::{Ask, Refusal};
use std::collections::BTreeSet;

impl MeetingHost {
    /// A process asks about its ways, which are to lead to this `spot`, if they can lead anywhere. An error: what it is
    /// answered at once, and what the user should know. `told`: of which sites the user knows it.
    pub(crate) fn ask_way(
        &self,
        by: Process,
        number: u64,
        ask: Ask,
        spot: Result<Spot, Refusal>,
        told: &mut BTreeSet<usize>,
    ) -> Result<(), (Refusal, Option<String>)> {
        match (spot, ask) {
            (Ok(spot), ask) => self.ask(by, number, ask, spot),
            // The gateway may be down. What the process had at the door goes all the same. Without the gateway nobody
            // knows at which site its ports are: they end with the process.
            (Err(_), Ask::Leave { keys, .. }) => {
                let ports = Vec::new();
                self.ask(by, number, Ask::Leave { keys, ports }, Spot::default());
            }
            (Err(why), ask) => {
                // Who opens a port is reached directly perhaps, so this is no error of its call. Who connects hears it
                // as one.
                let is_news = matches!(ask, Ask::Enter { .. }) && told.insert(by.0);
                let notice = is_news.then(|| without_ways(&why.why));
                return Err((why, notice));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::wish::Wish;
    use super::*;
    use isthmus_wire::question::Kind;
    use tokio::sync::mpsc;

    #[test]
    fn without_ways_a_process_may_leave_and_its_user_hears_of_it_once_for_each_site() {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let (wishes, mut asked) = mpsc::unbounded_channel();
        let task = runtime.as_ref().expect("threads").spawn(async {});
        let meeting = MeetingHost { wishes, task };
        let refusal = || Err(Refusal::new(Kind::Unable, "no gateway"));
        let mut told = BTreeSet::new();
        let mut ask = |by, ask| meeting.ask_way(by, 1, ask, refusal(), &mut told);
        let enter = || Ask::Enter { port: 1, gate: None };
        let cross = || Ask::Cross { entries: Vec::new() };
        let has_news = |refused: Result<(), (Refusal, Option<String>)>| refused.expect_err("no way").1.is_some();
        assert!(!has_news(ask((0, 0), cross())), "it is an error of the call");
        assert!(has_news(ask((0, 0), enter())) && !has_news(ask((0, 1), enter())));
        assert!(has_news(ask((1, 0), enter())), "another site");
        assert!(asked.try_recv().is_err());
        let (keys, ports) = (vec![[7; 16]], vec![9]);
        assert!(
            ask(
                (0, 0),
                Ask::Leave {
                    keys: keys.clone(),
                    ports
                }
            )
            .is_ok()
        );
        match asked.try_recv() {
            Ok(Wish::Asked((0, 0), 1, Ask::Leave { keys: closed, ports }, spot)) => {
                assert_eq!((closed, ports), (keys, Vec::new()));
                assert!(spot.at.is_none());
            }
            _ => panic!("the host is not asked"),
        }
    }
}
