// SPDX-License-Identifier: Apache-2.0
//! Parts that have come, as the coordinator has them: a line for each of their subjobs, which the task of that subjob
//! uses in place of a connection of its own.

use super::door::{Came, News};
use super::place::Held;
use super::stream::{LONGEST, receive, send};
use isthmus_job::gathering::PartSubjob;
use isthmus_reach::Failure;
use isthmus_wire::gathering::{FromPart, Said, ToPart};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::io::{ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Messages for a part that wait while its connection takes earlier ones.
const QUEUE: usize = 16;
/// How long parts have at the end to hear it.
const FAREWELL: Duration = Duration::from_secs(3);

/// A part that is there.
pub(crate) struct Part {
    out: mpsc::Sender<Vec<u8>>,
    said: Vec<mpsc::UnboundedReceiver<Said>>,
    interrupts: mpsc::UnboundedReceiver<u32>,
    reading: JoinHandle<()>,
}

impl Part {
    /// Takes one in that has come.
    pub(crate) fn admit(came: Came, number: u32, of: u32, news: mpsc::UnboundedSender<News>) -> Self {
        let (reader, writer) = tokio::io::split(came.stream);
        let (out, queue) = mpsc::channel(QUEUE);
        let (interrupt, interrupts) = mpsc::unbounded_channel();
        let (tell, said): (Vec<_>, Vec<_>) = came.come.members.iter().map(|_| mpsc::unbounded_channel()).unzip();
        tokio::spawn(write(writer, queue));
        // The queue is empty: there is room.
        let _ = out.try_send(ToPart::Admitted { part: number, of }.encode());
        let reading = tokio::spawn(async move {
            read(reader, &tell, &interrupt).await;
            drop(tell);
            let _ = news.send(News::Left(number));
        });
        Self {
            out,
            said,
            interrupts,
            reading,
        }
    }

    /// The world does not come about.
    pub(crate) async fn refuse(self, why: &str) {
        let _ = self.out.send(ToPart::Refused(why.to_owned()).encode()).await;
        drop((self.out, self.said));
        let _ = tokio::time::timeout(FAREWELL, self.reading).await;
    }
}

async fn write(mut writer: WriteHalf<DuplexStream>, mut queue: mpsc::Receiver<Vec<u8>>) {
    while let Some(message) = queue.recv().await {
        if send(&mut writer, &message).await.is_err() {
            return;
        }
    }
    let _ = writer.shutdown().await;
}

/// Passes on what a part says until it goes, or says what it may not.
async fn read(
    mut reader: ReadHalf<DuplexStream>,
    tell: &[mpsc::UnboundedSender<Said>],
    interrupt: &mpsc::UnboundedSender<u32>,
) {
    while let Ok(body) = receive(&mut reader, LONGEST).await {
        match FromPart::decode(&body) {
            Ok(FromPart::Said { subjob, said }) => match tell.get(subjob as usize) {
                // The task of the subjob may have ended.
                Some(line) => drop(line.send(said)),
                None => return,
            },
            Ok(FromPart::Interrupt(signal @ 1..=31)) => drop(interrupt.send(signal)),
            _ => return,
        }
    }
}

/// What there is of a subjob whose launcher is another part.
pub(crate) struct Line {
    part: u32,
    host: String,
    /// Its number in its part.
    pub(crate) index: u32,
    /// Its first rank.
    pub(crate) first: u32,
    pub(crate) out: mpsc::Sender<Vec<u8>>,
    pub(crate) said: mpsc::UnboundedReceiver<Said>,
}

/// A part's connection: where messages for it go, and who reads its own.
type Ends = (mpsc::Sender<Vec<u8>>, JoinHandle<()>);

/// The parts of a job; most jobs have none.
#[derive(Default)]
pub(crate) struct Gathered {
    lines: Mutex<HashMap<usize, Line>>,
    parts: Mutex<Vec<Ends>>,
    interrupts: Mutex<Vec<(String, mpsc::UnboundedReceiver<u32>)>>,
    /// This part, as the others know it.
    here: String,
    /// What they come through.
    #[expect(dead_code, reason = "it is kept open")]
    held: Option<Held>,
}

impl Gathered {
    /// All parts of a world, at these places in the job; `host`: where each was started.
    pub(crate) fn new(parts: BTreeMap<u32, Part>, places: &[PartSubjob], host: impl Fn(u32) -> String) -> Self {
        let here = (1..).find(|number| !parts.contains_key(number)).unwrap_or_default();
        let called = |number: u32| format!("part {number} on {}", host(number));
        let gathered = Self {
            here: called(here),
            ..Self::default()
        };
        for (number, part) in parts {
            let own = places.iter().filter(|place| place.part == number);
            for (place, said) in own.zip(part.said) {
                let line = Line {
                    part: number,
                    host: host(number),
                    index: u32::try_from(place.index).unwrap_or(u32::MAX),
                    first: place.first,
                    out: part.out.clone(),
                    said,
                };
                lock(&gathered.lines).insert(place.number, line);
            }
            lock(&gathered.parts).push((part.out, part.reading));
            lock(&gathered.interrupts).push((called(number), part.interrupts));
        }
        gathered
    }

    /// The parts come through this place, as long as the job runs.
    pub(crate) fn through(self, held: Option<Held>) -> Self {
        Self { held, ..self }
    }

    /// The job has no part that another launcher has.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.parts).is_empty()
    }

    /// This part, as users of the others read it; empty: there are no others.
    pub(crate) fn here(&self) -> &str {
        &self.here
    }

    /// Users of other parts may want the end: `interrupt` hears of which, and by which signal.
    pub(crate) fn hear_interrupts(&self, interrupt: impl Fn(String, u32) + Clone + Send + 'static) {
        for (part, mut signals) in std::mem::take(&mut *lock(&self.interrupts)) {
            let interrupt = interrupt.clone();
            tokio::spawn(async move {
                while let Some(signal) = signals.recv().await {
                    interrupt(part.clone(), signal);
                }
            });
        }
    }

    /// The job is over: all parts hear how it ended.
    pub(crate) async fn over(&self, status: i32, problem: Option<&str>, hint: &str) {
        let message = ToPart::Over {
            status,
            problem: problem.unwrap_or_default().to_owned(),
            hint: hint.to_owned(),
        };
        let message = message.encode();
        lock(&self.lines).clear();
        let parts = std::mem::take(&mut *lock(&self.parts));
        let told = async {
            for (out, _) in &parts {
                let _ = out.send(message.clone()).await;
            }
            for (out, reading) in parts {
                drop(out);
                let _ = reading.await;
            }
        };
        let _ = tokio::time::timeout(FAREWELL, told).await;
    }

    /// The line of the subjob with this number, once.
    pub(crate) fn take(&self, number: usize) -> Option<Line> {
        lock(&self.lines).remove(&number)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Line {
    /// Its part is gone.
    pub(crate) fn lost(&self) -> Failure {
        let problem = format!("the launcher of part {} on {} is gone", self.part, self.host);
        let hint = "its user ended it, or the network to it is down; what it has started ends by itself";
        Failure::new(problem, hint).unreached()
    }
}
