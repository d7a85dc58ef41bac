// SPDX-License-Identifier: Apache-2.0
//! Ways of a part's processes through the host at which jobs meet. The launcher of the part has them, as it has all
//! that belongs to its sites: who coordinates does not reach these. What else processes ask goes to whoever
//! coordinates.

use crate::coordinator::open::{Asked, Worth};
use crate::happening::{Event, Met, Process};
use crate::meeting::{MeetingHost, Spot, When, spot};
use crate::shared::Shared;
use isthmus_job::Subjob;
use isthmus_wire::gateway::FromGateway;
use isthmus_wire::question::{Answer, Ask, Kind, MAX_OPEN, Question, Refusal};
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::mpsc;

/// The host, as a part has it.
pub(super) struct Ways {
    meeting: Option<MeetingHost>,
    answering: Asked,
    /// Ports of gateways that agents of this part have.
    gateways: BTreeMap<usize, u16>,
    /// Sites whose processes are not reached, of which the user was told.
    told: BTreeSet<usize>,
}

/// What becomes of a question.
pub(super) enum Becomes {
    /// It is one for whoever coordinates.
    Passed(Question),
    /// It is answered here, now or later.
    Taken(Option<Answer>),
    /// It is answered with a refusal, of which the user should know.
    Refused(Answer, String),
    /// The process asks more than it may.
    TooMany(String),
}

impl Ways {
    /// An error: what is wrong with the host.
    pub(super) fn new(shared: &Shared, events: &mpsc::UnboundedSender<Event>) -> std::io::Result<Self> {
        let host = shared.options.meet.as_deref();
        let begin = |host| MeetingHost::begin(host, &shared.options.ssh, false, events, When::Wanted);
        Ok(Self {
            meeting: host.map(begin).transpose()?,
            answering: Asked::default(),
            gateways: BTreeMap::new(),
            told: BTreeSet::new(),
        })
    }

    /// A gateway whose agent belongs to this part says something to whoever coordinates.
    pub(super) fn overhear(&mut self, site: usize, message: &[u8]) {
        if let Ok(FromGateway::Listening { port, .. }) = FromGateway::decode(message) {
            self.gateways.insert(site, port);
        }
    }

    /// A process asks something.
    pub(super) fn hear(&mut self, shared: &Shared, all: &[Subjob], by: Process, question: Question) -> Becomes {
        let (Some(meeting), true) = (&self.meeting, is_about_ways(&question.ask)) else {
            return Becomes::Passed(question);
        };
        let Question { number, ask } = question;
        match self.answering.ask(by, number) {
            Worth::New => {}
            Worth::Open => return Becomes::Taken(None),
            Worth::Answered(answer) => return Becomes::Taken(Some(answer)),
            Worth::TooMany => return Becomes::TooMany(format!("it asked more than {MAX_OPEN} questions at a time")),
        }
        let spot = self.spot(shared, all, by.0);
        let Err((why, notice)) = meeting.ask_way(by, number, ask, spot, &mut self.told) else {
            return Becomes::Taken(None);
        };
        let said = Err(why);
        let answer = Answer { number, said };
        self.answering.answer(by, &answer);
        match notice {
            None => Becomes::Taken(Some(answer)),
            Some(notice) => Becomes::Refused(answer, notice),
        }
    }

    fn spot(&self, shared: &Shared, all: &[Subjob], site: usize) -> Result<Spot, Refusal> {
        let Some(subjob) = all.get(site) else {
            return Err(Refusal::new(Kind::Unable, "there is no such site"));
        };
        let mut gateways = self.gateways.iter();
        let gateway = gateways.find_map(|(there, port)| {
            let other = all.get(*there).filter(|other| other.lan == subjob.lan)?;
            Some((&other.contact, *port))
        });
        spot(&shared.access, subjob, gateway)
    }

    /// Something has come of what was asked of the host: who is to be answered, or what the user should know.
    pub(super) fn met(&mut self, met: Met) -> Result<Option<(Process, Answer)>, String> {
        match met {
            Met::Answer(by, number, said) => {
                let answer = Answer { number, said };
                Ok(self.answering.answer(by, &answer).then_some((by, answer)))
            }
            Met::Notice(notice) => Err(notice),
            // Whoever coordinates publishes.
            Met::Unpublished(..) => Ok(None),
        }
    }

    /// A process has ended.
    pub(super) fn forget(&mut self, process: Process) {
        self.answering.forget(process);
        if let Some(meeting) = &self.meeting {
            meeting.forget(process);
        }
    }

    /// Nothing of the part stays at the host.
    pub(super) async fn end(self) {
        if let Some(meeting) = self.meeting {
            meeting.end().await;
        }
    }
}

fn is_about_ways(ask: &Ask) -> bool {
    matches!(ask, Ask::Enter { .. } | Ask::Cross { .. } | Ask::Leave { .. })
}
