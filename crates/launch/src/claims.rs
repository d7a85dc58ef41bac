// SPDX-License-Identifier: Apache-2.0
//! What an agent may say: of the processes of its own subjob, of its own site, and only so much. An agent that says
//! anything else is lost as a site is that sends nonsense: nothing of it reaches the rest of the job.

use isthmus_job::Subjob;
use isthmus_wire::boot::{LinkTraffic, MAX_REASON};
use isthmus_wire::grid::{FromAgent, MAX_CHUNK, Made, NodeProcesses, OUTPUT_WINDOW, Stream};

/// Output that an agent may have sent and that is not printed: its window, and what it says without credit or has sent
/// again on a connection that follows another one.
pub(crate) const MOST_OUTPUT: usize = 3 * OUTPUT_WINDOW as usize;
/// Longest piece of text of a process. Records of a trace come as the process has sent them.
const MOST_TEXT: usize = 2 * MAX_CHUNK;
/// How often files that were made may be told of: by the machine itself, and by nodes where its directory is not seen.
const MADE: usize = 5;
/// Most addresses of a node.
const MOST_ADDRESSES: usize = 256;

/// What the agent of one subjob may say.
#[derive(Debug)]
pub(crate) struct Claims {
    site: String,
    count: u32,
    started: bool,
    made: usize,
}

impl Claims {
    pub(crate) fn new(subjob: &Subjob) -> Self {
        Self {
            site: subjob.site.clone(),
            count: subjob.count,
            started: false,
            made: 0,
        }
    }

    /// Whether the agent may say this.
    ///
    /// # Errors
    /// What is wrong with it, as what the agent has done.
    pub(crate) fn check(&mut self, message: &FromAgent) -> Result<(), String> {
        match message {
            FromAgent::Started(parts) => self.starts(parts),
            FromAgent::Arrived(list) => self.all(list.iter().map(|arrival| arrival.index)),
            FromAgent::Exited(list) => self.all(list.iter().map(|(index, _)| *index)),
            FromAgent::Conditions(list) => self.all(list.iter().map(|one| one.index)),
            FromAgent::Output { index, stream, bytes } => match stream {
                Stream::Output | Stream::Error if bytes.len() > MOST_TEXT => {
                    Err(format!("it sent {} bytes of output in one piece", bytes.len()))
                }
                _ => self.one(*index),
            },
            FromAgent::Finished { index, counters } => {
                self.one(*index)?;
                self.links(&counters.traffic)?;
                self.processes(counters.time.processes)
            }
            FromAgent::Waiting { index, .. } | FromAgent::Asked { index, .. } => self.one(*index),
            FromAgent::Aborted { index, reason, .. } => {
                if reason.len() > MAX_REASON {
                    return Err(format!("it gave a reason of {} bytes", reason.len()));
                }
                self.one(*index)
            }
            FromAgent::Traffic { first, traffic } => {
                self.one(*first)?;
                self.links(traffic)
            }
            FromAgent::Time(first, time) => {
                self.one(*first)?;
                self.processes(time.processes)
            }
            // Of itself and of its site as a whole; what a gateway may say is checked where it is heard.
            FromAgent::Hello(_)
            | FromAgent::File { .. }
            | FromAgent::Queued { .. }
            | FromAgent::Refused { .. }
            | FromAgent::InputCredit(_)
            | FromAgent::Beside(_)
            | FromAgent::Suspended(_)
            | FromAgent::Pong(..)
            | FromAgent::Gone
            | FromAgent::Gateway(_)
            // Whose these are their own task checks.
            | FromAgent::Neighbour { .. }
            | FromAgent::NeighbourTook { .. }
            | FromAgent::LauncherEnded(_) => Ok(()),
            FromAgent::Made(made) => self.makes(made),
        }
    }

    fn one(&self, index: u32) -> Result<(), String> {
        if index < self.count {
            return Ok(());
        }
        Err(format!(
            "it spoke for process {index} of its subjob, which has {}",
            self.count
        ))
    }

    /// Some of its processes, none of them twice as often as there are any.
    fn all(&self, mut indices: impl ExactSizeIterator<Item = u32>) -> Result<(), String> {
        if indices.len() > self.count as usize {
            return Err(format!("it spoke for {} processes of {}", indices.len(), self.count));
        }
        indices.try_for_each(|index| self.one(index))
    }

    fn processes(&self, number: u32) -> Result<(), String> {
        if number <= self.count {
            return Ok(());
        }
        Err(format!("it told the time of {number} processes of {}", self.count))
    }

    /// Traffic is told by the site that it comes from, for its own processes.
    fn links(&self, traffic: &[LinkTraffic]) -> Result<(), String> {
        match traffic.iter().find(|link| link.from != self.site) {
            Some(link) => Err(format!("it told of traffic of site '{}'", link.from)),
            None => traffic.iter().try_for_each(|link| self.processes(link.observers)),
        }
    }

    fn makes(&mut self, made: &Made) -> Result<(), String> {
        self.made += 1;
        if self.made > MADE {
            return Err("it told too often of the files that its processes have made".to_owned());
        }
        match made.some.len() {
            0..=Made::SOME => Ok(()),
            many => Err(format!("it named {many} files that its processes have made")),
        }
    }

    fn starts(&mut self, parts: &[NodeProcesses]) -> Result<(), String> {
        let processes: u64 = parts.iter().map(|part| u64::from(part.processes)).sum();
        if std::mem::replace(&mut self.started, true) {
            return Err("it started its processes twice".to_owned());
        }
        if processes != u64::from(self.count) {
            return Err(format!("it started {processes} processes instead of {}", self.count));
        }
        match parts.iter().find(|part| part.addresses.len() > MOST_ADDRESSES) {
            Some(part) => Err(format!("it gave {} addresses of a node", part.addresses.len())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_job::{Program, sites};
    use isthmus_wire::boot::Counters;
    use isthmus_wire::grid::{Arrival, Exit};
    use isthmus_wire::place::Representation;
    use isthmus_wire::question::{Ask, Question};
    use isthmus_wire::time::Time;
    use isthmus_wire::waiting::Condition;

    fn claims() -> Claims {
        let specs = ["home:2", "lab:3"].map(|s| sites::SiteSpec::parse(s).unwrap());
        let template = sites::template(Program::one("./x"), Vec::new());
        let job = sites::job_of_sites(&specs, None, &template).unwrap();
        Claims::new(&job.subjobs()[1])
    }

    fn traffic(from: &str) -> Vec<LinkTraffic> {
        vec![LinkTraffic {
            from: from.into(),
            to: "home".into(),
            ..LinkTraffic::default()
        }]
    }

    fn started(processes: &[u32]) -> FromAgent {
        let part = |&processes| NodeProcesses {
            host: "n".into(),
            addresses: Vec::new(),
            processors: 1,
            processes,
        };
        FromAgent::Started(processes.iter().map(part).collect())
    }

    /// Everything that names a process, of the process `index`.
    fn all_of(index: u32) -> Vec<FromAgent> {
        let counters = Counters {
            traffic: traffic("lab"),
            ..Counters::default()
        };
        vec![
            FromAgent::Arrived(vec![Arrival {
                index,
                pid: 1,
                port: 1,
                representation: Representation([0; 8]),
                vendor: None,
                signing_request: Vec::new(),
            }]),
            FromAgent::Output {
                index,
                stream: Stream::Output,
                bytes: b"x".to_vec(),
            },
            FromAgent::Output {
                index,
                stream: Stream::Trace,
                bytes: vec![0; 4 * MAX_CHUNK],
            },
            FromAgent::Exited(vec![(0, Exit::Status(0)), (index, Exit::Status(1))]),
            FromAgent::Finished { index, counters },
            FromAgent::Aborted {
                index,
                code: 1,
                reason: "x".repeat(MAX_REASON),
            },
            FromAgent::Waiting { index, waiting: None },
            FromAgent::Asked {
                index,
                question: Question {
                    number: 1,
                    ask: Ask::Lookup {
                        scope: None,
                        name: "ocean".into(),
                    },
                },
            },
            FromAgent::Conditions(vec![Condition {
                index,
                ..Condition::default()
            }]),
            FromAgent::Traffic {
                first: index,
                traffic: traffic("lab"),
            },
            FromAgent::Time(index, Time::default()),
        ]
    }

    #[test]
    fn an_agent_speaks_for_the_processes_of_its_subjob_and_for_no_others() {
        for message in all_of(2) {
            assert_eq!(claims().check(&message), Ok(()), "{message:?}");
        }
        for index in [3, 4, u32::MAX] {
            for message in all_of(index) {
                let word = claims().check(&message).unwrap_err();
                assert!(
                    word.contains(&format!("process {index} of its subjob, which has 3")),
                    "{word}"
                );
            }
        }
    }

    #[test]
    fn an_agent_tells_of_its_own_site_once_and_within_bounds() {
        let mut own = claims();
        assert_eq!(own.check(&started(&[1, 2])), Ok(()));
        assert!(own.check(&started(&[3])).unwrap_err().contains("twice"));
        let time = Time {
            processes: 4,
            ..Time::default()
        };
        let counters = Counters {
            traffic: traffic("home"),
            ..Counters::default()
        };
        let many = (0..4).map(|_| (0, Exit::Status(0))).collect();
        for wrong in [
            started(&[2]),
            started(&[u32::MAX, 4]),
            FromAgent::Exited(many),
            FromAgent::Time(0, time),
            FromAgent::Traffic {
                first: 0,
                traffic: vec![LinkTraffic {
                    observers: 4,
                    ..traffic("lab").remove(0)
                }],
            },
            FromAgent::Finished { index: 0, counters },
            FromAgent::Traffic {
                first: 0,
                traffic: traffic("home"),
            },
            FromAgent::Aborted {
                index: 0,
                code: 1,
                reason: "x".repeat(MAX_REASON + 1),
            },
            FromAgent::Output {
                index: 0,
                stream: Stream::Error,
                bytes: vec![0; MOST_TEXT + 1],
            },
        ] {
            assert!(claims().check(&wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn files_that_were_made_are_told_of_a_few_times_and_some_of_them_by_name() {
        let made = |count| {
            let file = isthmus_wire::grid::MadeFile {
                path: "a".into(),
                size: 1,
                number: 2,
            };
            FromAgent::Made(Made {
                directory: "/d".into(),
                place: isthmus_wire::grid::Where::Own,
                node: String::new(),
                minutes: 1,
                files: 1000,
                bytes: 1000,
                some: vec![file; count],
            })
        };
        assert!(claims().check(&made(Made::SOME + 1)).is_err());
        let mut claims = claims();
        assert!((0..MADE).all(|_| claims.check(&made(Made::SOME)).is_ok()));
        assert!(claims.check(&made(1)).unwrap_err().contains("too often"));
    }
}
