// SPDX-License-Identifier: Apache-2.0
//! What is there and how it is connected, found out without starting a job: the same agents, gateways and handshakes.

use crate::Options;
use crate::directories::Directories;
use crate::happening::{Event, SiteEvent};
use crate::neighbours::Neighbours;
use crate::paths::{Crossings, Messages, PathReport};
use crate::piece::Piece;
use crate::shared::Shared;
use crate::site::Site;
use crate::staged::SiteContents;
use isthmus_job::Job;
use isthmus_reach::Failure;
use isthmus_reach::sharing::{Access, CONNECTING};
use isthmus_wire::grid::{AgentHello, FromAgent, Reach, ToAgent, VERSION};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout_at};

/// How long a site may take to be reached: longer than ssh tries to connect, since its words say what is wrong.
const REACHING: Duration = Duration::from_secs(CONNECTING as u64 + 5);
/// How long ways between sites may take to be found out: an attempt that nobody answers takes 2.5 s.
const SETTLING: Duration = Duration::from_secs(4);
/// How long a rate may take.
const MEASURING: Duration = Duration::from_secs(4);
/// How long agents have to leave.
const LEAVING: Duration = Duration::from_secs(2);
/// Questions for round trip and clock of each agent.
const PINGS: u64 = 5;

/// What was found out.
#[derive(Clone, Debug, Default)]
pub struct Examination {
    /// In the order of the job.
    pub sites: Vec<SiteReport>,
    /// Between each two local areas.
    pub paths: Vec<PathReport>,
}

/// A site.
#[derive(Clone, Debug, Default)]
pub struct SiteReport {
    /// Name.
    pub name: String,
    /// How it is reached.
    pub contact: String,
    /// Host name of the machine that was reached.
    pub host: Option<String>,
    /// Its architecture.
    pub architecture: String,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// Processors that may be used.
    pub processors: u32,
    /// Version of the protocol that its agent speaks.
    pub version: u32,
    /// How long it took to reach it.
    pub reached_after: Duration,
    /// Round trip to its agent.
    pub round_trip: Option<Duration>,
    /// Its clock minus ours, nanoseconds, right to half of the round trip.
    pub clock_offset: Option<i64>,
    /// Why it cannot be used.
    pub problem: String,
    /// What to do about that.
    pub hint: String,
    /// What it said beside that.
    pub notices: Vec<String>,
}

impl SiteReport {
    /// It cannot be used. The first cause is the one: what follows comes of leaving.
    fn fail(&mut self, failure: Failure) {
        if self.problem.is_empty() {
            (self.problem, self.hint) = (failure.problem, failure.hint);
        }
    }
}

/// What goes to a site: two queues, as its connection wants them.
type Commands = (mpsc::UnboundedSender<Vec<u8>>, mpsc::UnboundedSender<Piece>);

struct Doctor {
    sites: Vec<SiteReport>,
    crossings: Crossings,
    commands: Vec<Commands>,
    began: Instant,
    closed: Vec<bool>,
    asked: Vec<(Instant, u64)>,
}

pub(crate) async fn examine(job: &Job, options: Options) -> std::io::Result<Examination> {
    let (sender, mut events) = mpsc::unbounded_channel();
    let (leaving, seen) = watch::channel(false);
    let name = format!(
        "doctor-{}",
        isthmus_stage::content::hex(&isthmus_stage::guarded::random::<6>()?)
    );
    let crossings = Crossings::new(&name, job, &options)?;
    let shared = Arc::new(Shared {
        access: Arc::new(Access::new(&options.binary, &options.ssh, options.terminal).patient(options.silence)),
        staged: SiteContents::default(),
        directories: Directories::default(),
        options,
        job: name,
        reach: Reach::Wide,
        gathered: Default::default(),
        examine: true,
        planned: job.subjobs().len(),
        goes_on: false,
    });
    let mut commands = Vec::new();
    for (number, subjob) in job.subjobs().iter().enumerate() {
        let ((command, queue), (last, rest)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
        let site = Site {
            number,
            connection: number,
            subjob: subjob.clone(),
            input: isthmus_wire::grid::Input::Nobody,
            shared: Arc::clone(&shared),
            events: sender.clone(),
            leaving: seen.clone(),
            lost: watch::channel(false).1,
            gateway: crossings.open(number),
            last: rest,
            again: None,
            beside: None,
            neighbours: Neighbours::default(),
        };
        tokio::spawn(site.run(queue));
        commands.push((command, last));
    }
    let report = |subjob: &isthmus_job::Subjob| SiteReport {
        name: subjob.site.clone(),
        contact: subjob.contact.to_string(),
        ..SiteReport::default()
    };
    let mut doctor = Doctor {
        sites: job.subjobs().iter().map(report).collect(),
        crossings,
        closed: vec![false; commands.len()],
        asked: vec![(Instant::now(), 0); commands.len()],
        commands,
        began: Instant::now(),
    };
    doctor.look(&mut events).await;
    let paths = doctor.crossings.report();
    (0..doctor.commands.len()).for_each(|site| doctor.send(site, &ToAgent::End));
    leaving.send_replace(true);
    doctor
        .until(&mut events, LEAVING, |d| d.closed.iter().all(|c| *c))
        .await;
    Ok(Examination {
        sites: doctor.sites,
        paths,
    })
}

impl Doctor {
    async fn look(&mut self, events: &mut mpsc::UnboundedReceiver<Event>) {
        let answered = |d: &Self| {
            let open = |(site, closed): (&SiteReport, &bool)| *closed || site.host.is_some();
            d.sites.iter().zip(&d.closed).all(open)
        };
        self.until(events, REACHING, answered).await;
        for site in self
            .sites
            .iter_mut()
            .filter(|s| s.host.is_none() && s.problem.is_empty())
        {
            site.fail(Failure::new(
                format!("not reached within {} s", REACHING.as_secs()),
                format!("check that this works: ssh {} true", site.contact),
            ));
            self.crossings.absent(&site.name);
        }
        let known = |d: &Self| {
            let asked = d.sites.iter().zip(&d.asked).zip(&d.closed);
            let pinged = asked
                .into_iter()
                .all(|((s, (_, n)), closed)| *closed || s.host.is_none() || *n > PINGS);
            pinged && d.crossings.all_known()
        };
        self.until(events, SETTLING, known).await;
        let mut pair = 0;
        while let Some((site, message, done)) = self.crossings.measure(pair) {
            if !done {
                self.tell(vec![(site, message)]);
                let measured = |d: &Self| d.crossings.measure(pair).is_none_or(|(.., done)| done);
                self.until(events, MEASURING, measured).await;
            }
            pair += 1;
        }
    }

    /// Handles what happens until this is so, or the time is over.
    async fn until(&mut self, events: &mut mpsc::UnboundedReceiver<Event>, time: Duration, so: impl Fn(&Self) -> bool) {
        let end = Instant::now() + time;
        while !so(self) {
            match timeout_at(end, events.recv()).await {
                Ok(Some(Event::Site(site, event))) => self.handle(site, event),
                Ok(Some(_)) => {}
                Ok(None) => return sleep_until(end).await,
                Err(_) => return,
            }
        }
    }

    fn handle(&mut self, site: usize, event: SiteEvent) {
        match event {
            SiteEvent::Hello(hello) => self.greet(site, *hello),
            SiteEvent::Message(FromAgent::Gateway(message)) => {
                let (messages, problem) = self.crossings.said(site, &message);
                self.tell(messages);
                self.sites[site].notices.extend(problem);
            }
            SiteEvent::Message(FromAgent::Pong(number, clock)) => self.answered(site, number, clock),
            SiteEvent::Notice(text) => self.sites[site].notices.push(text),
            SiteEvent::Closed(failure) => self.close(site, failure),
            SiteEvent::Message(_) | SiteEvent::Progress | SiteEvent::Staging(_) | SiteEvent::Serving => {}
        }
    }

    fn greet(&mut self, site: usize, hello: AgentHello) {
        let report = &mut self.sites[site];
        report.host = Some(hello.host);
        report.architecture = hello.architecture;
        report.addresses = hello.addresses;
        report.processors = hello.processors;
        report.version = hello.version;
        report.reached_after = self.began.elapsed();
        self.ask(site, 1);
    }

    fn ask(&mut self, site: usize, number: u64) {
        self.asked[site] = (Instant::now(), number);
        if number <= PINGS {
            self.send(site, &ToAgent::Ping(number));
        }
    }

    fn answered(&mut self, site: usize, number: u64, clock: u64) {
        let (at, asked) = self.asked[site];
        if number != asked {
            return;
        }
        let trip = at.elapsed();
        let report = &mut self.sites[site];
        if report.round_trip.is_none_or(|best| trip < best) {
            report.round_trip = Some(trip);
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let ours = now.saturating_sub(trip / 2).as_nanos();
            report.clock_offset = i64::try_from(i128::from(clock) - ours as i128).ok();
        }
        self.ask(site, number + 1);
    }

    fn close(&mut self, site: usize, failure: Failure) {
        self.closed[site] = true;
        let report = &mut self.sites[site];
        if report.host.is_none() {
            report.fail(failure);
            self.crossings.absent(&report.name);
        }
    }

    fn tell(&self, messages: Messages) {
        for (site, message) in messages {
            self.send(site, &ToAgent::Gateway(message.encode()));
        }
    }

    fn send(&self, site: usize, message: &ToAgent) {
        // A closed connection has been or will be told by its task.
        let _ = self.commands[site].0.send(message.encode());
    }
}

/// Whether the agent of a site and we understand each other.
pub fn is_our_version(site: &SiteReport) -> bool {
    site.version == VERSION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cause_is_told_and_not_that_we_left() {
        let mut report = SiteReport::default();
        report.fail(Failure::new(
            "ssh: connect to host lab port 22: Connection timed out",
            "the host does not answer",
        ));
        report.fail(Failure::new("the job ended before the site was there", ""));
        assert_eq!(report.problem, "ssh: connect to host lab port 22: Connection timed out");
        assert_eq!(report.hint, "the host does not answer");
        assert!(
            REACHING > Duration::from_secs(CONNECTING.into()),
            "ssh says first what is wrong"
        );
    }
}
