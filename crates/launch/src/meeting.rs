// SPDX-License-Identifier: Apache-2.0
//! The host at which this job meets others (`isthmus run --meet HOST`), for jobs that cannot reach each other. Only ssh
//! goes there, and nothing of ours runs there but a shell.
//!
//! ```text
//!  process      this launcher                     the host              another launcher      process
//!    listens  <---  door  <--- ssh -R N:door ---  127.0.0.1:N  <--- ssh -L ---  crossing  <---  dials
//!                   names ---> shell: files in ~/.cache/isthmus/names-met
//! ```
//! A process is told its *entry*: N and a key. Whoever has it is given a port of its own machine by its launcher, a
//! *crossing*, and everything that is sent there arrives at the process that listens. What passes is TLS between them.
//!
//! A connection that is lost is made again, with the same port N.
//!
//! Parents and children of one launcher need no host: that launcher reaches both ([`own`]).

mod beyond;
mod client;
mod crossing;
mod door;
mod entering;
mod entries;
mod own;
mod ways;
mod wish;

use crate::happening::{Event, Met, Process};
use crate::proving::prove;
use beyond::{Beyond, without_ways};
pub(crate) use beyond::{Spot, spot};
use client::{Client, Line, hash};
use crossing::Crossings;
use door::Door;
use entering::{Barred, Entering, Place};
use isthmus_job::JobError;
use isthmus_reach::plain;
use isthmus_stage::content::hex;
use isthmus_wire::entry::{Entry, MAX_HOST, is_host};
use isthmus_wire::gate::Key;
use isthmus_wire::question::{Ask, Kind, Refusal, Said, Scope};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
pub(crate) use wish::When;
use wish::Wish;

/// Before the host is tried again.
const PAUSE: Duration = Duration::from_secs(2);
/// How long the last words may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// What is answered.
type Verdict = Result<Said, Refusal>;

/// Whether jobs can meet at a host that is called so.
///
/// # Errors
/// What has to be otherwise.
pub fn can_meet_at(host: &str) -> Result<(), JobError> {
    if is_host(host) {
        return Ok(());
    }
    let problem = format!(
        "--meet '{}': it has to be an ssh destination of at most {MAX_HOST} letters, digits and signs as in user@host",
        plain(host)
    );
    Err(JobError::new(problem).hint("give the host a short name in ~/.ssh/config"))
}

/// The launcher's side of it.
pub(crate) struct MeetingHost {
    wishes: mpsc::UnboundedSender<Wish>,
    task: JoinHandle<()>,
}

impl MeetingHost {
    /// With this host, this command as the ssh client, and somebody at a `terminal` who answers its questions or
    /// nobody. An error: what is wrong with the host.
    pub(crate) fn begin(
        host: &str,
        ssh: &str,
        terminal: bool,
        events: &mpsc::UnboundedSender<Event>,
        when: When,
    ) -> std::io::Result<Self> {
        can_meet_at(host).map_err(|error| std::io::Error::other(error.problem))?;
        let Some(directory) = isthmus_reach::sharing::directory() else {
            return Err(std::io::Error::other(
                "--meet needs a private directory below /tmp or XDG_RUNTIME_DIR for a socket of ssh, and none can be made",
            ));
        };
        let (wishes, hears) = mpsc::unbounded_channel();
        let door = Door::open()?;
        let keeper = Keeper {
            client: Client::new(ssh, terminal, host, directory.path()),
            crossings: Crossings::through_host(),
            entering: Entering {
                entries: door.entries().clone(),
                directory,
            },
            door,
            names: HashMap::new(),
            open: HashMap::new(),
            asked: 0,
            events: events.clone(),
            without: BTreeSet::new(),
            keyless: false,
            first: None,
        };
        let task = tokio::spawn(keeper.run(hears, when));
        Ok(Self { wishes, task })
    }

    /// Without a host: this launcher carries what processes of its own job cannot send each other directly. An error:
    /// what it lacks for that.
    pub(crate) fn own(events: &mpsc::UnboundedSender<Event>) -> Result<Self, String> {
        let (wishes, hears) = mpsc::unbounded_channel();
        let task = tokio::spawn(own::Own::new(events)?.run(hears));
        Ok(Self { wishes, task })
    }

    /// A process asks; the answer comes as an event. `spot`: where its ways are to lead.
    pub(crate) fn ask(&self, by: Process, number: u64, ask: Ask, spot: Spot) {
        let _ = self.wishes.send(Wish::Asked(by, number, ask, spot));
    }

    /// A process has ended.
    pub(crate) fn forget(&self, by: Process) {
        let _ = self.wishes.send(Wish::Forget(by));
    }

    /// Nothing of the job stays at the host.
    pub(crate) async fn end(mut self) {
        let _ = self.wishes.send(Wish::End);
        if tokio::time::timeout(FAREWELL, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

/// What was asked of the shell.
struct Open {
    by: Process,
    number: u64,
    /// The file and what is to stand in it, where that is new.
    publishes: Option<(String, String)>,
    name: String,
}

/// Has the connection to the host.
struct Keeper {
    client: Client,
    crossings: Crossings,
    door: Door,
    entering: Entering,
    /// What is published at the host: by file, what stands in it and who has done that.
    names: HashMap<String, (String, Process)>,
    /// Questions to the shell, by number.
    open: HashMap<u64, Open>,
    asked: u64,
    events: mpsc::UnboundedSender<Event>,
    /// Sites to which the ssh connection carries nothing else, of which the user was told.
    without: BTreeSet<String>,
    /// The user was told that there is no key at the host.
    keyless: bool,
    /// What the host was first wanted for.
    first: Option<Wish>,
}

impl Keeper {
    async fn run(mut self, mut wishes: mpsc::UnboundedReceiver<Wish>, when: When) {
        while when == When::Wanted && self.first.is_none() {
            match wishes.recv().await {
                None | Some(Wish::End) => return,
                Some(Wish::Forget(_)) => {}
                asked => self.first = asked,
            }
        }
        let mut told = false;
        for turn in 0u64.. {
            let Some(connected) = self.connect(&mut wishes, turn == 0).await else {
                return;
            };
            match connected {
                Ok(()) => {
                    if std::mem::take(&mut told) {
                        self.tell(format!(
                            "the meeting host '{}' (--meet) can be reached again",
                            self.client.host()
                        ));
                    }
                    self.tell_of_key();
                    if self.serve(&mut wishes).await {
                        return;
                    }
                    self.lose();
                }
                Err(why) => {
                    if let Some(wish) = self.first.take() {
                        refuse(&self.events, &self.door, &mut self.crossings, wish);
                    }
                    if !std::mem::replace(&mut told, true) {
                        self.tell(format!(
                            "the meeting host '{}' (--meet) cannot be reached: {why}; this job runs without it, and its \
                             launcher keeps trying",
                            self.client.host()
                        ));
                    }
                }
            }
            let pause = tokio::time::sleep(PAUSE);
            tokio::pin!(pause);
            loop {
                tokio::select! {
                    () = &mut pause => break,
                    wish = wishes.recv() => match wish {
                        None | Some(Wish::End) => return,
                        Some(wish) => refuse(&self.events, &self.door, &mut self.crossings, wish),
                    },
                }
            }
        }
    }

    /// `None`: the job ends. `first`: whoever asks before the first answer waits for it.
    async fn connect(&mut self, wishes: &mut mpsc::UnboundedReceiver<Wish>, first: bool) -> Option<Result<(), String>> {
        let Self {
            client,
            crossings,
            door,
            events,
            ..
        } = self;
        let connecting = client.connect(door.port());
        tokio::pin!(connecting);
        loop {
            tokio::select! {
                connected = &mut connecting => return Some(connected),
                wish = wishes.recv(), if !first => match wish {
                    None | Some(Wish::End) => return None,
                    Some(wish) => refuse(events, door, crossings, wish),
                },
            }
        }
    }

    fn tell(&self, notice: String) {
        let _ = self.events.send(Event::Met(Met::Notice(notice)));
    }

    fn tell_of_key(&mut self) {
        if self.client.key().is_none() && !std::mem::replace(&mut self.keyless, true) {
            self.tell(format!(
                "'{}' has no key for jobs that meet there: there it has to be in ~/.local/state/isthmus/keys/own, which nobody else may \
                 read (chmod 600); jobs whose launchers have different homes do not take each other",
                self.client.host()
            ));
        }
    }

    fn answer(&self, by: Process, number: u64, verdict: Verdict) {
        let _ = self.events.send(Event::Met(Met::Answer(by, number, verdict)));
    }

    /// Until the connection ends; whether the job does.
    async fn serve(&mut self, wishes: &mut mpsc::UnboundedReceiver<Wish>) -> bool {
        self.crossings.renew(&self.client).await;
        for (key, (value, _)) in &self.names {
            // Whoever has taken the name meanwhile keeps it.
            self.client.say(&format!("0 p {key} {value}\n"));
        }
        if let Some(wish) = self.first.take() {
            self.grant(wish).await;
        }
        loop {
            tokio::select! {
                line = self.client.hear() => match line {
                    Some(line) => self.heard(line),
                    None => return false,
                },
                wish = wishes.recv() => match wish {
                    None | Some(Wish::End) => {
                        self.client.end().await;
                        return true;
                    }
                    Some(wish) => self.grant(wish).await,
                },
            }
        }
    }

    /// The connection is gone: nobody answers what was asked.
    fn lose(&mut self) {
        for (_, open) in std::mem::take(&mut self.open) {
            self.undo(&open);
            self.answer(open.by, open.number, Err(unreached()));
        }
    }

    /// What could not be published at the host is not published here, either.
    fn undo(&self, open: &Open) {
        if let Some(port) = open.publishes.as_ref().and_then(|(_, value)| read(value)) {
            let _ = self
                .events
                .send(Event::Met(Met::Unpublished(open.by, open.name.clone(), port)));
        }
    }

    async fn grant(&mut self, wish: Wish) {
        match wish {
            Wish::Asked(by, number, ask, spot) => {
                if let Some(verdict) = self.consider(by, number, ask, &spot).await {
                    self.answer(by, number, verdict);
                }
            }
            Wish::Forget(by) => {
                self.entering.entries.forget(by);
                self.crossings.forget(by);
                let own = self.names.iter().filter(|(_, (_, publisher))| *publisher == by);
                let own: Vec<String> = own.map(|(key, _)| key.clone()).collect();
                own.iter().for_each(|key| self.take_back(key));
            }
            Wish::End => {}
        }
    }

    fn take_back(&mut self, key: &str) {
        if let Some((value, _)) = self.names.remove(key) {
            self.client.say(&format!("0 u {key} {value}\n"));
        }
    }

    async fn consider(&mut self, by: Process, number: u64, ask: Ask, spot: &Spot) -> Option<Verdict> {
        let at = spot.at.as_ref();
        Some(match ask {
            Ask::Enter { port, gate } => self.enter(by, port, gate, spot).await,
            Ask::Cross { entries } => {
                let ports = self.cross(by, &entries, at).await;
                let at_gateway = spot.gateway.is_some();
                ports.map(|ports| Said::Ports { ports, at_gateway })
            }
            Ask::Leave { keys, ports } => {
                keys.iter().for_each(|key| self.entering.entries.close(by, key));
                ports.iter().for_each(|port| self.crossings.close(by, *port, at));
                Ok(Said::Done)
            }
            Ask::Publish { name, port, .. } => {
                let (key, value) = (file_of(&name), written(&name, &port));
                self.put('p', by, number, name, Some((key, value)));
                return None;
            }
            Ask::Unpublish { name, .. } => {
                let key = file_of(&name);
                if self.names.get(&key).is_some_and(|(_, publisher)| *publisher == by) {
                    self.take_back(&key);
                }
                Ok(Said::Done)
            }
            Ask::Lookup { name, .. } => {
                self.put('l', by, number, name, None);
                return None;
            }
            Ask::Prove {
                secret,
                fingerprint,
                keys,
            } => prove(&secret, &fingerprint, &keys, self.client.key()),
            Ask::Spawn { .. }
            | Ask::Agree(_)
            | Ask::Apart(_)
            | Ask::Met { .. }
            | Ask::Parted { .. }
            | Ask::Tell { .. }
            | Ask::Hear { .. }
            | Ask::Carry { .. }
            | Ask::Brought(_) => Err(Refusal::new(Kind::Unable, "the meeting host (--meet) does not do this")),
        })
    }

    async fn enter(&mut self, by: Process, port: u16, gate: Option<Key>, spot: &Spot) -> Verdict {
        let (entrance, place) = self.client.place();
        let place = Place {
            host: self.client.host().to_owned(),
            place,
            port: entrance,
        };
        let entered = self.entering.enter(by, port, gate, spot, place, When::Now).await;
        entered.map(Said::Entry).map_err(|Barred { refusal, site }| {
            if site.is_some_and(|site| self.without.insert(site)) {
                self.tell(without_ways(&refusal.why));
            }
            refusal
        })
    }

    async fn cross(&mut self, by: Process, entries: &[Entry], at: Option<&Beyond>) -> Result<Vec<u16>, Refusal> {
        let (_, place) = self.client.place();
        if let Some(other) = entries.iter().find(|entry| entry.place != place) {
            let (theirs, ours) = (&other.host, self.client.host());
            let why = format!(
                "it can be reached through '{theirs}', which is another host than '{ours}', at which this job meets others: \
                 start both jobs with isthmus run --meet and one host and user"
            );
            return Err(Refusal::new(Kind::Unable, why));
        }
        let mut ports = Vec::with_capacity(entries.len());
        for entry in entries {
            let cannot = |why| Refusal::new(Kind::Unable, format!("no way through '{}': {why}", self.client.host()));
            let led = self.crossings.lead_to(entry.port, &self.client).await;
            led.map_err(cannot)?;
            ports.push(self.crossings.open(by, entry, at).await?);
        }
        Ok(ports)
    }

    /// Asks the shell.
    fn put(&mut self, verb: char, by: Process, number: u64, name: String, publishes: Option<(String, String)>) {
        self.asked += 1;
        let (key, value) = publishes.clone().unwrap_or_else(|| (file_of(&name), "0".to_owned()));
        self.client.say(&format!("{} {verb} {key} {value}\n", self.asked));
        let open = Open {
            by,
            number,
            publishes,
            name,
        };
        self.open.insert(self.asked, open);
    }

    /// What the shell answers.
    fn heard(&mut self, line: Line) {
        let Some(open) = self.open.remove(&line.number) else {
            return;
        };
        if line.verdict != "done" {
            self.undo(&open);
        }
        let Open {
            by,
            number,
            publishes,
            name,
        } = open;
        let host = self.client.host();
        let verdict = match (line.verdict.as_str(), publishes) {
            ("done", Some((key, value))) => {
                self.names.insert(key, (value, by));
                Ok(Said::Done)
            }
            ("taken", Some(_)) => {
                let why = format!("the name '{name}' is published already at '{host}', by another job of yours");
                Err(Refusal::new(Kind::Taken, why))
            }
            ("is", None) => match read(&line.value) {
                Some(port) => Ok(Said::Port(port)),
                None => Err(Refusal::new(
                    Kind::Unable,
                    format!("what '{host}' keeps for the name '{name}' is not the name of a port"),
                )),
            },
            ("unknown", None) => {
                let why = format!(
                    "nobody has published the name '{name}' in this job or for all jobs of the user, here or at '{host}'"
                );
                Err(Refusal::new(Kind::Unknown, why))
            }
            _ => Err(Refusal::new(
                Kind::Unable,
                format!("names cannot be kept at '{host}': {}", line.verdict),
            )),
        };
        self.answer(by, number, verdict);
    }
}

/// What can be done without the host, and a refusal of everything else.
fn refuse(events: &mpsc::UnboundedSender<Event>, door: &Door, crossings: &mut Crossings, wish: Wish) {
    match wish {
        Wish::Asked(by, number, Ask::Leave { keys, ports }, spot) => {
            keys.iter().for_each(|key| door.entries().close(by, key));
            ports
                .iter()
                .for_each(|port| crossings.close(by, *port, spot.at.as_ref()));
            let _ = events.send(Event::Met(Met::Answer(by, number, Ok(Said::Done))));
        }
        Wish::Asked(by, number, ask, _) => {
            if let Ask::Prove {
                secret,
                fingerprint,
                keys,
            } = &ask
            {
                let said = prove(secret, fingerprint, keys, None);
                let _ = events.send(Event::Met(Met::Answer(by, number, said)));
                return;
            }
            if let Ask::Publish { name, port, .. } = ask {
                let _ = events.send(Event::Met(Met::Unpublished(by, name, port)));
            }
            let _ = events.send(Event::Met(Met::Answer(by, number, Err(unreached()))));
        }
        Wish::Forget(by) => {
            door.entries().forget(by);
            crossings.forget(by);
        }
        Wish::End => {}
    }
}

fn unreached() -> Refusal {
    Refusal::new(
        Kind::Unable,
        "the meeting host (--meet) cannot be reached now; the launcher keeps trying",
    )
}

/// Whether the launcher asks the host, too.
pub(crate) fn concerns(scope: Option<Scope>) -> bool {
    scope != Some(Scope::Job)
}

/// The file of a name.
fn file_of(name: &str) -> String {
    hex(&hash(name))
}

/// What stands in it: nothing in it means anything to a shell.
fn written(name: &str, port: &str) -> String {
    format!("{}.{}", hex(name.as_bytes()), hex(port.as_bytes()))
}

/// The port of a name.
fn read(written: &str) -> Option<String> {
    let (_, port) = written.split_once('.')?;
    let bytes = port.as_bytes();
    if bytes.len() > 2 * isthmus_wire::question::MAX_PORT || bytes.len() % 2 != 0 {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = bytes
        .chunks(2)
        .map(|pair| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8));
    String::from_utf8(pairs.collect::<Option<_>>()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_at_the_host_is_plain_and_comes_back() {
        for (name, port) in [("ocean", "isthmus1:AAAA"), ("a b\n'$(x)", "é"), ("", "")] {
            let text = written(name, port);
            assert!(
                text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'.'),
                "{text}"
            );
            assert_eq!(read(&text).as_deref(), Some(port));
        }
        for bad in ["", "00", ".0", ".zz", ".ff", &format!(".{}", "a".repeat(4 << 12))] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
