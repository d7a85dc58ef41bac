// SPDX-License-Identifier: Apache-2.0
//! The task of one subjob: connects, stages, starts, then carries messages both ways.

mod by_part;

use crate::claims::Claims;
use crate::files::{Filled, Filling, works_at_home};
use crate::happening::{Event, SiteEvent};
use crate::hold::Again;
use crate::link::{Carrier, Link, next};
use crate::neighbours::{Beside, Neighbours};
use crate::output;
use crate::paths::Opening;
use crate::piece::Piece;
use crate::programs;
use crate::reached;
use crate::shared::Shared;
use isthmus_job::scratch;
use isthmus_job::{Contact, OnLoss, Program, Subjob, Terms};
use isthmus_reach::Failure;
use isthmus_reach::connection::{Connection, Verb};
use isthmus_reach::staging::{self, Staged};
use isthmus_stage::words;
use isthmus_wire::grid::{AgentHello, FileState, FromAgent, Input, MAX_CHUNK, Reach, Section, Start, ToAgent, VERSION};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, watch};

/// One subjob's task.
pub(crate) struct Site {
    pub(crate) number: usize,
    /// Number of the connection.
    pub(crate) connection: usize,
    pub(crate) subjob: Subjob,
    pub(crate) input: Input,
    pub(crate) shared: Arc<Shared>,
    pub(crate) events: mpsc::UnboundedSender<Event>,
    pub(crate) leaving: watch::Receiver<bool>,
    /// First message to the gateway that this site's agent shall start.
    pub(crate) gateway: Option<Opening>,
    /// Messages that go when no other waits.
    pub(crate) last: mpsc::UnboundedReceiver<Piece>,
    /// The site has been silent for too long.
    pub(crate) lost: watch::Receiver<bool>,
    /// Its agent is there already.
    pub(crate) again: Option<Again>,
    /// Another agent at its machine starts its agent.
    pub(crate) beside: Option<Beside>,
    /// Agents that are reached through its agent.
    pub(crate) neighbours: Neighbours,
}

/// Pause between two attempts to reach an agent again.
const PAUSE: Duration = Duration::from_secs(1);
/// How long an agent that is being reached again has to hear that the job is over.
const PARTING: Duration = Duration::from_secs(4);

impl Site {
    /// Runs until the connection is closed.
    pub(crate) async fn run(mut self, commands: mpsc::UnboundedReceiver<Vec<u8>>) {
        if matches!(self.subjob.contact, Contact::Part(_)) {
            let (events, connection) = (self.events.clone(), self.connection);
            let failure = self.run_by_part(commands).await;
            let _ = events.send(Event::Site(connection, SiteEvent::Closed(failure)));
            return;
        }
        let mut leaving = self.leaving.clone();
        let given_up = async {
            let _ = leaving.wait_for(|l| *l).await;
            if self.again.is_some() {
                tokio::time::sleep(PARTING).await;
            }
        };
        let opened = tokio::select! {
            opened = async {
                match &self.again {
                    Some(again) => self.open_again(again).await,
                    None => self.open().await,
                }
            } => opened,
            () = given_up => Err(Failure::new("the job ended before the site was there", "")),
        };
        let last = std::mem::replace(&mut self.last, mpsc::unbounded_channel().1);
        let failure = match opened {
            Ok((mut link, client)) => {
                self.tell(SiteEvent::Serving);
                self.carry(&mut link, client, commands, last).await
            }
            Err(failure) => failure,
        };
        self.neighbours.close();
        self.tell(SiteEvent::Closed(failure));
    }

    pub(crate) fn tell(&self, event: SiteEvent) {
        let _ = self.events.send(Event::Site(self.connection, event));
    }

    async fn open(&self) -> Result<(Link, Carrier), Failure> {
        let access = &self.shared.access;
        let tell = |detail: String| self.tell(SiteEvent::Staging(detail));
        let programs = programs::fetched(&self.subjob, &self.shared, &tell).await?;
        let directory = self.fill().await?;
        if let Some(beside) = &self.beside {
            if let Some(link) = self.open_beside(beside, &programs, directory.clone()).await? {
                return Ok((link, Carrier::Neighbour));
            }
        }
        let gate = access.sharing.gate(&self.subjob.contact).await;
        let progress = || self.tell(SiteEvent::Progress);
        let quiet = |text| self.tell(SiteEvent::Notice(text));
        let subjob = &self.subjob;
        let reached = Connection::reach(access, &subjob.contact, &Verb::Agent, &subjob.setup, progress, quiet).await;
        drop(gate);
        let (mut link, mut client) = Link::of(reached?);
        match self.set_up(&mut link, &mut client, &programs, directory).await {
            Ok(()) => Ok((link, client)),
            Err(failure) => Err(client.explain(failure).await),
        }
    }

    /// Has the agent of another subjob start one beside itself. What is to be started is said at once: what this agent
    /// would say first is known. Nothing: it has started none, and a connection is to be made.
    async fn open_beside(
        &self,
        beside: &Beside,
        programs: &[Program],
        filled: Option<Filled>,
    ) -> Result<Option<Link>, Failure> {
        let mut link = Link::beside(beside.open());
        let mut begun = self.send_start(&mut link, beside.hello.clone(), programs, filled).await;
        while begun.is_ok() && !link.greeted {
            begun = link.receive().await.map(drop);
        }
        match begun {
            Ok(()) => Ok(Some(link)),
            Err(failure) if failure.is_closed() && !link.greeted => Ok(None),
            Err(failure) => Err(Carrier::Neighbour.explain(failure).await),
        }
    }

    /// Reaches the agent that is there, as often as that takes.
    async fn open_again(&self, again: &Again) -> Result<(Link, Carrier), Failure> {
        let began = tokio::time::Instant::now();
        loop {
            match self.try_again(again).await {
                Err(failure) if failure.is_unreached() && began.elapsed() < again.patience => {
                    tokio::time::sleep(PAUSE).await;
                }
                other => return other,
            }
        }
    }

    async fn try_again(&self, again: &Again) -> Result<(Link, Carrier), Failure> {
        let access = &self.shared.access;
        let gate = access.sharing.gate(&self.subjob.contact).await;
        let verb = Verb::Again {
            job: self.shared.job.clone(),
            subjob: self.number,
        };
        let reached = Connection::reach(access, &self.subjob.contact, &verb, &self.subjob.setup, || {}, |_| {}).await;
        drop(gate);
        let (mut link, mut client) = Link::of(reached?);
        let heard = match link.send(&ToAgent::Resume(again.resume())).await {
            Ok(()) => link.receive().await,
            Err(failure) => Err(failure),
        };
        match heard {
            Ok(FromAgent::Hello(hello)) if hello.version == VERSION => {
                client.establish();
                self.tell(SiteEvent::Hello(Box::new(hello)));
                Ok((link, client))
            }
            Ok(_) => Err(out_of_turn()),
            Err(failure) => match client.finds_nobody().await {
                Some(words) => Err(Failure::new(format!("its agent has ended: {}", words.trim()), "")),
                None => Err(client.explain(failure).await),
            },
        }
    }

    /// From the agent's hello to its start of the processes.
    async fn set_up(
        &self,
        link: &mut Link,
        client: &mut Carrier,
        programs: &[Program],
        filled: Option<Filled>,
    ) -> Result<(), Failure> {
        let FromAgent::Hello(hello) = link.receive().await? else {
            return Err(out_of_turn());
        };
        if hello.version != VERSION {
            let problem = format!(
                "its agent speaks version {} of the protocol, we speak {VERSION}",
                hello.version
            );
            return Err(Failure::new(problem, "use the same isthmus at both ends"));
        }
        client.establish();
        self.send_start(link, hello, programs, filled).await
    }

    /// Stages what an agent needs that has said this of its machine, and tells it what to start.
    async fn send_start(
        &self,
        link: &mut Link,
        hello: AgentHello,
        programs: &[Program],
        filled: Option<Filled>,
    ) -> Result<(), Failure> {
        let architecture = hello.architecture.clone();
        self.tell(SiteEvent::Hello(Box::new(hello)));
        if let Some(Opening { first, .. }) = &self.gateway {
            link.send(&ToAgent::Gateway(first.clone())).await?;
        }
        if self.shared.examine {
            return Ok(());
        }
        let sections = self.stage(link, programs, &architecture).await?;
        let start = self.start_message(sections, filled);
        link.send(&ToAgent::Start(Box::new(start))).await
    }

    /// Brings the files of the subjob to a directory there, when it has any.
    async fn fill(&self) -> Result<Option<Filled>, Failure> {
        if self.subjob.files.is_empty() {
            return Ok(None);
        }
        let filling = Filling {
            shared: &self.shared,
            number: self.number,
            subjob: &self.subjob,
        };
        let tell = |detail: String| self.tell(SiteEvent::Staging(detail));
        let mut filled = filling.fill(&tell).await?;
        if let Some(notice) = filled.notice.take() {
            self.tell(SiteEvent::Notice(notice));
        }
        Ok(Some(filled))
    }

    fn start_message(&self, sections: Vec<Section>, filled: Option<Filled>) -> Start {
        let (files, scratch) = filled.map_or((None, None), |f| (Some(f.files), f.scratch));
        let with_scratch = scratch.as_ref().map(|path| self.subjob.with_scratch(path));
        let subjob = with_scratch.as_ref().unwrap_or(&self.subjob);
        let sections = programs::place(sections, subjob, scratch.as_deref());
        let options = &self.shared.options;
        let shared = reached::paths(subjob, &self.shared.job, &options.directory, scratch.as_deref());
        let at_home = self.subjob.contact == Contact::Home;
        let submitted = self.subjob.allocation.is_some();
        // Relative names of the program belong to where the user stands.
        let filled = files.clone().filter(|_| !works_at_home(&self.subjob));
        // Whom a scheduler starts does not stand there, at home neither.
        let own = (!at_home || submitted).then(|| words::text(&options.directory));
        // A relative directory of another site is one below that where its processes work otherwise.
        let (below, named) = match &subjob.directory {
            Some(path) if path.starts_with(['/', '~']) => (None, Some(path.clone())),
            Some(path) if !at_home => (Some(path.clone()), None),
            path => {
                let here = path.as_ref().map(|path| options.directory.join(words::path(path)));
                (None, here.map(words::text))
            }
        };
        // As MPICH-G2 had them; what the job says itself wins.
        let mut environment = vec![
            ("GLOBUS_DUROC_SUBJOB_INDEX".to_owned(), self.number.to_string()),
            ("GLOBUS_LAN_ID".to_owned(), self.subjob.lan.clone()),
        ];
        environment.extend(options.environment.iter().cloned());
        environment.extend(
            files
                .iter()
                .map(|path| (isthmus_settings::FILES.name.to_owned(), path.clone())),
        );
        environment.extend(scratch.map(|path| (scratch::VARIABLE.to_owned(), path)));
        environment.extend(subjob.environment.iter().cloned());
        // Whether the others of a job go on is one matter for all of its processes.
        let goes_on = self.shared.goes_on || Terms::of(subjob).is_ok_and(|terms| terms.goes_on());
        let on_loss = if goes_on { OnLoss::GoOn } else { OnLoss::End };
        environment.push((isthmus_settings::ON_LOSS.name.to_owned(), on_loss.word().to_owned()));
        if let Some(host) = &options.meet {
            environment.push((isthmus_settings::MEET.name.to_owned(), host.clone()));
        }
        Start {
            job: self.shared.job.clone(),
            subjob: u32::try_from(self.number).unwrap_or(u32::MAX),
            first: 0,
            count: self.subjob.count,
            of: self.subjob.count,
            sections,
            environment,
            directory_optional: (subjob.directory.is_none() || below.is_some()) && files.is_none(),
            files: files.clone().unwrap_or_default(),
            directory: named.or(filled).or(own).unwrap_or_default(),
            below: below.unwrap_or_default(),
            reach: match &self.gateway {
                // Its parents are another world: they are reached as other nodes are.
                _ if self.number >= self.shared.planned => Reach::Wide,
                Some(gateway) if gateway.is_only_way && self.subjob.allocation.is_none() => Reach::Gateway,
                _ => self.shared.reach,
            },
            input: self.input,
            stdin: output::Redirection::of(subjob, "stdin").there(),
            stdout: output::Redirection::of(subjob, "stdout").there(),
            stderr: output::Redirection::of(subjob, "stderr").there(),
            silence: u32::try_from(options.agents_silence().as_secs()).unwrap_or(u32::MAX),
            allocation: self.subjob.allocation.clone(),
            vendor: self.subjob.vendor().unwrap_or_default().to_owned(),
            shared,
        }
    }

    /// What the site starts: programs and directories of libraries as it knows them.
    async fn stage(&self, link: &mut Link, programs: &[Program], architecture: &str) -> Result<Vec<Section>, Failure> {
        let library = self.stage_library(link).await?;
        let mut all = Vec::with_capacity(programs.len());
        for (section, program) in self.subjob.sections.iter().zip(programs) {
            let path = programs::for_architecture(program, architecture, section)?;
            let directory = &self.shared.options.directory;
            let staged = match self.subjob.contact {
                Contact::Home => {
                    let path = programs::at_home(path, &self.subjob, section, directory);
                    programs::staged(section, path, library.clone())
                }
                _ => self.stage_program(link, path, architecture, section, &library).await?,
            };
            all.push(staged);
        }
        Ok(all)
    }

    /// The directory of the MPI library there; empty: it is not needed.
    async fn stage_library(&self, link: &mut Link) -> Result<String, Failure> {
        let Some(file) = &self.shared.options.library else {
            return Ok(String::new());
        };
        // Nodes of a scheduler at home may not see where it is installed.
        if self.subjob.contact == Contact::Home && self.subjob.allocation.is_none() {
            return Ok(file.parent().map(words::text).unwrap_or_default());
        }
        let path = self.put(link, staging::prepare(file.clone()).await?).await?;
        Ok(directory_of(&path))
    }

    /// A program with the directories of its libraries, which begin with that of the MPI library.
    async fn stage_program(
        &self,
        link: &mut Link,
        program: &str,
        architecture: &str,
        section: &isthmus_job::Section,
        library: &str,
    ) -> Result<Section, Failure> {
        let options = &self.shared.options;
        let mut library = library.to_owned();
        let fetched = section.program.for_architecture(architecture);
        let fetched = fetched.is_some_and(|p| p.contains("://"));
        if !(fetched || options.stage && self.subjob.stage) {
            return Ok(programs::staged(section, program.to_owned(), library));
        }
        let file = staging::find_program(program, &options.directory, architecture)?;
        let first = programs::library_path(&self.subjob, section, &options.directory);
        for missing in self.lacking(&file, first).await? {
            let path = self.put(link, staging::prepare(missing).await?).await?;
            library.push_str(if library.is_empty() { "" } else { ":" });
            library.push_str(&directory_of(&path));
        }
        let path = self.put(link, staging::prepare(file).await?).await?;
        Ok(programs::staged(section, path, library))
    }

    /// Shared libraries of a program that the site lacks.
    async fn lacking(&self, program: &Path, first: Vec<PathBuf>) -> Result<Vec<PathBuf>, Failure> {
        let (access, subjob, known) = (&self.shared.access, &self.subjob, &self.shared.staged);
        let wanted = staging::wanted(program, first).await;
        let answer = known.lacking(subjob, &wanted);
        // Behind one name there may be several machines; a neighbour is on the one that was asked.
        if let Some(lacking) = answer.filter(|_| self.beside.is_some()) {
            return Ok(lacking);
        }
        let lacking = staging::lacking(access, &subjob.contact, &subjob.setup, wanted.clone()).await?;
        known.learn_lacking(subjob, wanted, &lacking);
        Ok(lacking)
    }

    /// Puts a file into the site's cache unless it is there.
    async fn put(&self, link: &mut Link, file: Staged) -> Result<String, Failure> {
        self.tell(SiteEvent::Progress);
        // The agent of a scheduler hands its files on to its nodes: it has to know them.
        let is_known = self.beside.is_some() && self.subjob.allocation.is_none();
        let known = self.shared.staged.path(&self.subjob, &file);
        if let Some(path) = known.filter(|_| is_known) {
            return Ok(path);
        }
        link.send(&ToAgent::Offer {
            hash: file.hash,
            size: file.size,
            name: file.name.clone(),
        })
        .await?;
        let mut state = self.receive_file(link).await?;
        if state == FileState::Wanted {
            self.send_content(link, &file).await?;
            state = self.receive_file(link).await?;
        }
        match state {
            FileState::Here(path) => {
                self.shared.staged.learn_path(&self.subjob, &file, &path);
                Ok(path)
            }
            FileState::Failed(why) => Err(Failure::new(
                format!("'{}' could not be staged: {why}", file.name),
                "check the space and rights in ~/.cache at the site",
            )),
            FileState::Wanted => Err(out_of_turn()),
        }
    }

    async fn receive_file(&self, link: &mut Link) -> Result<FileState, Failure> {
        loop {
            match link.receive().await? {
                FromAgent::File { state, .. } => return Ok(state),
                // One that was not waited for.
                FromAgent::Hello(_) if self.beside.is_some() => {}
                // The gateway does not wait for files.
                message @ FromAgent::Gateway(_) => self.tell(SiteEvent::Message(message)),
                _ => return Err(out_of_turn()),
            }
        }
    }

    async fn send_content(&self, link: &mut Link, file: &Staged) -> Result<(), Failure> {
        let cannot = |error| Failure::new(format!("cannot read '{}': {error}", file.path.display()), "");
        let mut content = tokio::fs::File::open(&file.path).await.map_err(cannot)?.take(file.size);
        let mut buffer = vec![0; MAX_CHUNK];
        loop {
            let n = content.read(&mut buffer).await.map_err(cannot)?;
            if n == 0 {
                break;
            }
            link.send(&ToAgent::Chunk(buffer[..n].to_vec())).await?;
            self.tell(SiteEvent::Progress);
        }
        if content.limit() > 0 {
            return Err(Failure::new(
                format!("'{}' changed while it was staged", file.path.display()),
                "",
            ));
        }
        Ok(())
    }

    /// Carries messages until the agent closes the connection.
    async fn carry(
        &self,
        link: &mut Link,
        mut client: Carrier,
        mut commands: mpsc::UnboundedReceiver<Vec<u8>>,
        mut last: mpsc::UnboundedReceiver<Piece>,
    ) -> Failure {
        let Link {
            reader,
            writer,
            deframer,
            ..
        } = link;
        let writing = async {
            loop {
                let Some(bytes) = next_bytes(&mut commands, &mut last).await else {
                    break;
                };
                if writer.write_all(&bytes).await.is_err() || writer.flush().await.is_err() {
                    break;
                }
            }
            // The reading side decides when the connection is over.
            std::future::pending::<()>().await;
        };
        let mut claims = Claims::new(&self.subjob);
        let reading = async {
            loop {
                match next(reader, deframer).await {
                    Ok(FromAgent::Gone) => return None,
                    Ok(FromAgent::NeighbourTook { number, bytes }) => self.neighbours.took(number, bytes),
                    Ok(FromAgent::Neighbour { number, bytes }) => {
                        if let Err(what) = self.neighbours.hear(number, bytes) {
                            return Some(Failure::new(broken(&what), ""));
                        }
                    }
                    Ok(message) => match claims.check(&message) {
                        Ok(()) => self.tell(SiteEvent::Message(message)),
                        Err(what) => return Some(Failure::new(broken(&what), "")),
                    },
                    Err(failure) => return Some(failure),
                }
                let words = client.take_notices();
                if !words.is_empty() {
                    self.tell(SiteEvent::Notice(words));
                }
            }
        };
        let mut lost = self.lost.clone();
        let failure = tokio::select! {
            failure = reading => failure,
            () = writing => None,
            Ok(_) = lost.wait_for(|lost| *lost) => None,
        };
        if *lost.borrow() {
            client.give_up();
            return Failure::closed();
        }
        match failure {
            None => {
                // Its agent is gone in good order; the client follows, unless it hangs.
                let _ = tokio::time::timeout(Duration::from_secs(1), client.wait()).await;
                Failure::closed()
            }
            Some(failure) => client.explain(failure).await,
        }
    }
}

/// What an agent is told next: what comes `last` waits until nothing else is to be told.
async fn next_bytes(
    commands: &mut mpsc::UnboundedReceiver<Vec<u8>>,
    last: &mut mpsc::UnboundedReceiver<Piece>,
) -> Option<Vec<u8>> {
    tokio::select! {
        biased;
        bytes = commands.recv() => bytes,
        Some(piece) = last.recv() => Some(piece.take()),
    }
}

/// The directory of a file at the site.
fn directory_of(path: &str) -> String {
    let directory = Path::new(path).parent().map(|p| p.to_string_lossy().into_owned());
    directory.unwrap_or_default()
}

/// That an agent has said what it may not.
pub(crate) fn broken(what: &str) -> String {
    format!("its agent broke the protocol: {what}")
}

fn out_of_turn() -> Failure {
    Failure::new("its agent answered out of turn", "")
}
