// SPDX-License-Identifier: Apache-2.0
//! Worlds that are put together by hand: parts that their users start, in any order and on any machines, and that
//! become one job.
//!
//! ```text
//!  first part: gathers, then coordinates            another part
//!    door      <--- TLS, the ticket's secret ---      joins
//!    Gathering: who is missing                        waits
//!    Coordinator, one Line per subjob  <-- stream --> its own site tasks
//! ```
//! Whoever comes first gathers. Parts of one user find each other by the directory of worlds, or by a ticket. A part
//! starts its own program, with its own sites, files and output; the coordinator sees its agents as it sees others.

mod brings;
mod entering;
mod joined;
mod ticket;
mod waiting;
mod ways;

pub use ticket::{read as read_ticket, tickets};

use crate::console::Console;
use crate::parts::door::{Came, Door, News};
use crate::parts::here::{host, machine};
use crate::parts::place::{self, Found};
use crate::parts::{Gathered, Part};
use crate::trace::TraceFile;
use crate::{Options, Outcome, Session, control, coordinator};
use brings::Brings;
use isthmus_job::Job;
use isthmus_job::gathering::{self, Gathering, WorldPart};
use isthmus_stage::names::{Announced, announce};
use isthmus_wire::port::PortName;
use std::collections::BTreeMap;
use tokio::sync::mpsc;

/// How parts of a world find each other.
#[derive(Clone, Debug)]
pub enum World {
    /// By the user's directory of worlds: whoever comes first gathers.
    Named(WorldPart),
    /// At a place that all reach by ssh, and through it.
    Met(WorldPart, String),
    /// By a ticket, which says who gathers; as this part of it, or as any.
    Ticket(Box<PortName>, Option<WorldPart>),
}

/// What this part does once all are there.
enum Role {
    /// It came first: it runs the whole job.
    Coordinates(Job, Box<Gathered>),
    /// It takes part.
    Joins(joined::Entered),
}

/// Runs a job, which may be a part of a world.
pub(crate) async fn run(job: Job, mut options: Options, console: Box<dyn Console>) -> Outcome {
    let trace = match TraceFile::wanted(options.trace.as_deref()) {
        Ok(trace) => trace,
        Err(error) => return Outcome::unstarted(&error).closing(options.unbegun()),
    };
    let Some(world) = options.world.take() else {
        return coordinator::run(job, options, console, trace, Gathered::default()).await;
    };
    let mut brings = Brings {
        job,
        options,
        console,
        trace,
    };
    match come_together(&mut brings, world).await {
        Ok(Role::Coordinates(job, gathered)) => {
            let Brings {
                options,
                console,
                trace,
                ..
            } = brings;
            coordinator::run(job, options, console, trace, *gathered).await
        }
        Ok(Role::Joins(entered)) => joined::run(brings, entered).await,
        Err(outcome) => outcome.closing(brings.options.unbegun()),
    }
}

/// Until all parts are there.
async fn come_together(brings: &mut Brings, world: World) -> Result<Role, Outcome> {
    gathering::check(&brings.job).map_err(Outcome::refused)?;
    let part = match world {
        World::Ticket(ticket, part) => return join(brings, &ticket, part, None).await,
        World::Met(part, place) => return meet(brings, part, &place).await,
        World::Named(part) => part,
    };
    let door = Door::open().map_err(|error| no_door(&error))?;
    match announce(part.world.as_str(), &door.ticket.encode()) {
        Ok(Ok(announced)) => {
            let note = ticket::write(part.world.as_str(), &door.ticket);
            let others = other_machines(note.as_ref());
            let known = Notice::Here(announced, note);
            gather(brings, part, door, known, &others).await
        }
        Ok(Err(first)) => match PortName::decode(&first) {
            Ok(ticket) => join(brings, &ticket, Some(part), None).await,
            Err(why) => Err(Outcome::failure(format!(
                "what is known of the world '{}' is not a ticket: {why}",
                part.world
            ))),
        },
        Err(error) => Err(Outcome::failure(format!(
            "the directory of worlds cannot be used: {error}"
        ))),
    }
}

fn no_door(error: &std::io::Error) -> Outcome {
    Outcome::failure(format!("cannot wait for the other parts of the world: {error}"))
}

async fn join(
    brings: &mut Brings,
    ticket: &PortName,
    part: Option<WorldPart>,
    through: Option<&str>,
) -> Result<Role, Outcome> {
    joined::join(brings, ticket, part, through).await.map(Role::Joins)
}

/// The parts find each other at a place that all reach by ssh.
async fn meet(brings: &mut Brings, part: WorldPart, place: &str) -> Result<Role, Outcome> {
    let door = Door::open().map_err(|error| no_door(&error))?;
    match place::meet(&brings.options, place, part.world.as_str(), &door.ticket).await {
        Ok(Found::First(held)) => {
            let others = format!(" --meet {place}, on any machine");
            gather(brings, part, door, Notice::There(held), &others).await
        }
        Ok(Found::Ticket(ticket)) => join(brings, &ticket, Some(part), Some(place)).await,
        Err(why) => Err(Outcome {
            unreached: true,
            ..Outcome::failure(format!("the parts of the world cannot meet at '{place}': {why}"))
        }),
    }
}

/// By what others know that this part waits.
enum Notice {
    Here(Announced, Option<ticket::Note>),
    There(place::Held),
}

impl Notice {
    /// All parts are there. What the job needs as long as it runs.
    async fn complete(self) -> Option<place::Held> {
        match self {
            Self::Here(announced, note) => {
                drop((announced, note));
                None
            }
            Self::There(mut held) => {
                held.complete().await;
                Some(held)
            }
        }
    }
}

/// Waits for the other parts, to coordinate all of them. `others`: how they are started, for people.
async fn gather(
    brings: &mut Brings,
    world: WorldPart,
    door: Door,
    known: Notice,
    others: &str,
) -> Result<Role, Outcome> {
    let Brings {
        job, options, console, ..
    } = brings;
    let own = gathering::come(Some(&world), job, &host(), machine());
    let mut gathering = Gathering::new(world.clone(), own);
    console.notice(&waits(&world, &gathering.missing(), others));
    waiting::leave_terminal(options, console.as_mut());
    let (events, mut happening) = mpsc::unbounded_channel();
    let lent = options.session.as_ref().and_then(Session::lend_listener);
    let lent = lent.map(|listener| control::serve(listener, events.clone()));
    let lent = coordinator::listen_to_signals(&events).and_then(|()| lent.transpose());
    let answering_commands = lent.map_err(|error| Outcome::unstarted(&error))?;
    let (tell, mut news) = mpsc::unbounded_channel();
    let answering = door.serve(tell.clone());
    let mut parts: BTreeMap<u32, Part> = BTreeMap::new();
    while !gathering.missing().is_empty() {
        tokio::select! {
            signal = waiting::interrupted(job, &mut happening) => {
                let why = format!("part {} on {} was interrupted", world.part, host());
                for part in parts.into_values() {
                    part.refuse(&why).await;
                }
                return Err(Outcome::interrupted(signal));
            },
            Some(news) = news.recv() => match news {
                News::Came(came) => let_in(&mut gathering, &mut parts, *came, &tell, console.as_mut(), &world).await,
                News::Left(part) => if parts.remove(&part).is_some() {
                    let from = gathering.host(part).to_owned();
                    gathering.leave(part);
                    let missing = gathering::parts(&gathering.missing());
                    let left = format!("part {part} on {from} has left; waiting for {missing}");
                    console.notice(&format!("world '{}': {left}", world.world));
                },
            },
        }
    }
    drop(answering);
    // Whoever coordinates answers now.
    answering_commands.into_iter().for_each(|task| task.abort());
    let held = known.complete().await;
    let (job, places) = match gathering.job(job) {
        Ok(whole) => whole,
        Err(error) => {
            for part in parts.into_values() {
                part.refuse(&error.problem).await;
            }
            return Err(Outcome::refused(error));
        }
    };
    // What was described is numbered otherwise.
    options.described = Vec::new();
    let host = |part| gathering.host(part).to_owned();
    let gathered = Gathered::new(parts, &places, host).through(held);
    Ok(Role::Coordinates(job, Box::new(gathered)))
}

async fn let_in(
    gathering: &mut Gathering,
    parts: &mut BTreeMap<u32, Part>,
    came: Came,
    tell: &mpsc::UnboundedSender<News>,
    console: &mut dyn Console,
    world: &WorldPart,
) {
    match gathering.admit(came.come.clone()) {
        Ok(number) => {
            let missing = gathering.missing();
            let then = match missing.is_empty() {
                true => "all parts are there".to_owned(),
                false => format!("waiting for {}", gathering::parts(&missing)),
            };
            console.notice(&format!(
                "world '{}': part {number} is there, from {}; {then}",
                world.world,
                gathering.host(number)
            ));
            parts.insert(number, Part::admit(came, number, world.of, tell.clone()));
        }
        Err(why) => came.refuse(&why).await,
    }
}

/// How a part on another machine is started.
fn other_machines(note: Option<&ticket::Note>) -> String {
    match note {
        Some(note) => format!(
            "; on other machines: isthmus join TICKET ..., where TICKET is a copy of {}",
            note.path().display()
        ),
        None => String::new(),
    }
}

/// What the user is told who has come first.
fn waits(world: &WorldPart, missing: &[u32], others: &str) -> String {
    let (name, of) = (&world.world, world.of);
    let Some(next) = missing.first() else {
        return format!("world '{name}' has no other part");
    };
    format!(
        "world '{name}': part {} is here and waits for {}: isthmus run --world {name}={next}of{of}{others}",
        world.part,
        gathering::parts(missing)
    )
}
