// SPDX-License-Identifier: Apache-2.0
//! Members agree by their coordinator ([`isthmus_wire::agreeing`]): each asks, and all that live are answered the same.

use std::sync::{Arc, Mutex, PoisonError};

use isthmus_abi::constants as abi;
use isthmus_engine::{Activity, Completion, Engine, EngineError, Peer, Request, acknowledged, losses};
use isthmus_wire::agreeing::{Agree, Agreed, Members, What, Which, pieces, places};
use isthmus_wire::joining::Name;
use isthmus_wire::question::{Ask, Said};

use super::errands::Errands;
use crate::asker::Asker;
use crate::comm::{Comm, joined, next_agreement};
use crate::error::Result;
use crate::fail;
use crate::group::Group;
use crate::world::World;

/// What becomes of an answer, or of the lack of one: an error of the operation.
pub(super) type Then = Box<dyn FnOnce(&mut Engine, std::result::Result<&Agreed, &str>) -> Option<EngineError> + Send>;

/// A process that waits for the others.
struct Agreeing {
    asker: Arc<dyn Asker>,
    /// Until it is asked.
    agree: Option<Agree>,
    question: u64,
    everybody: Group,
    then: Option<Then>,
    /// With members of other jobs: what it does for its launcher meanwhile.
    errands: Option<Errands>,
}

impl Activity<Engine> for Agreeing {
    fn advance(&mut self, engine: &mut Engine) -> Option<Completion> {
        if let Some(agree) = &self.agree {
            match self.asker.ask(Ask::Agree(Box::new(agree.clone()))) {
                Ok(Some(question)) => (self.agree, self.question) = (None, question),
                Ok(None) => {
                    self.asker.hear(engine);
                    return None;
                }
                Err(why) => return self.ends(engine, Err(why)),
            }
        }
        let Some(answer) = self.asker.look(engine, self.question) else {
            if let Some(errands) = &mut self.errands {
                errands.advance(&*self.asker, engine);
            }
            return None;
        };
        self.ends(engine, answer.and_then(said))
    }
}

impl Agreeing {
    fn ends(&mut self, engine: &mut Engine, answer: std::result::Result<Agreed, String>) -> Option<Completion> {
        if let Some(errands) = &mut self.errands {
            errands.end(&*self.asker);
        }
        // What all have agreed on is known here from now on, whatever else has been heard.
        if let Ok(agreed) = &answer {
            let lost: Vec<Peer> = self
                .lost(agreed)
                .filter(|peer| !losses(&engine.core).contains(peer))
                .collect();
            if !lost.is_empty() {
                engine.lose_peers(lost, "the launcher knows that it has ended");
            }
        }
        let then = self.then.take()?;
        let error = then(engine, answer.as_ref().map_err(String::as_str));
        Some(Completion {
            error,
            ..Completion::default()
        })
    }

    fn lost<'a>(&'a self, agreed: &'a Agreed) -> impl Iterator<Item = Peer> + 'a {
        let members = self.everybody.members();
        places(&agreed.lost).filter_map(|place| members.get(place as usize).copied())
    }
}

fn said(said: Said) -> std::result::Result<Agreed, String> {
    match said {
        Said::Agreed(agreed) => Ok(*agreed),
        _ => Err("the launcher answered what was not asked; please report this".to_owned()),
    }
}

/// MPIX_Comm_agree: the AND of all members' numbers, and the error if a member has failed whose loss not all have
/// acknowledged. The same at all members that live.
pub fn agree(world: &World, comm: &Comm, flag: u32) -> Result<(u32, Result<()>)> {
    let agreed = Arc::new(Mutex::new(flag));
    let place = agreed.clone();
    let request = agree_later(world, comm, flag, move |flag| {
        *place.lock().unwrap_or_else(PoisonError::into_inner) = flag;
    })?;
    let done = world.wait(request).map(drop);
    let flag = *agreed.lock().unwrap_or_else(PoisonError::into_inner);
    Ok((flag, done))
}

/// MPIX_Comm_iagree: `then` gets the number, also where there is an error.
pub fn agree_later(world: &World, comm: &Comm, flag: u32, then: impl FnOnce(u32) + Send + 'static) -> Result<Request> {
    let name = comm.describe();
    let then: Then = Box::new(move |_, answer| match answer {
        Ok(agreed) => {
            then(agreed.flag);
            agreed.news.then(|| failed(&name, agreed))
        }
        Err(why) => Some(refused(why)),
    });
    start(world, comm, What::Number, flag, [0; 3], then)
}

/// Begins to agree.
pub(super) fn start(
    world: &World,
    comm: &Comm,
    what: What,
    flag: u32,
    contexts: [u32; 3],
    then: Then,
) -> Result<Request> {
    let everybody = comm.everybody();
    let Some(asker) = world.asker.get() else {
        return alone(world, comm, flag, contexts, then);
    };
    asker.hear(&mut world.engine().lock());
    let (worlds, members) = names(world, everybody)?;
    let agree = Agree {
        what,
        which: Which {
            scope: joined::meeting(comm).map_or_else(|| world.id(), |meeting| meeting.id()),
            context: comm.context().number(),
            round: next_agreement(comm),
        },
        flag,
        contexts,
        worlds,
        members,
        known: pieces(known(world, comm)),
    };
    let group = everybody.group();
    let errands =
        joined::is_joined(comm).then(|| Errands::new(agree.which, group.clone(), world.me(), world.carrying.clone()));
    Ok(world.engine().start_activity(Box::new(Agreeing {
        asker: asker.clone(),
        errands,
        agree: Some(agree),
        question: 0,
        everybody: everybody.group().clone(),
        then: Some(then),
    })))
}

/// Without a launcher a process agrees with itself.
fn alone(world: &World, comm: &Comm, flag: u32, contexts: [u32; 3], then: Then) -> Result<Request> {
    if comm.everybody().size() > 1 {
        fail!(
            abi::MPI_ERR_UNSUPPORTED_OPERATION,
            "processes agree on losses by their launcher, and this program was started without one; start it with isthmus run or \
             mpiexec"
        );
    }
    let agreed = Agreed {
        flag,
        contexts,
        news: false,
        lost: Vec::new(),
    };
    let mut engine = world.engine().lock();
    let error = then(&mut engine, Ok(&agreed));
    let request = engine.core.user_request();
    let completion = Completion {
        error,
        ..Completion::default()
    };
    engine.core.complete_user(request, completion);
    Ok(request)
}

/// Places of members whose loss the program has acknowledged, rising.
fn known(world: &World, comm: &Comm) -> Vec<u32> {
    let engine = world.engine().lock();
    let count = acknowledged(&engine.core, comm.context());
    let everybody = comm.everybody().group();
    let known = losses(&engine.core).iter().take(count);
    let mut places: Vec<u32> = known.filter_map(|&peer| everybody.rank_of(peer)).collect();
    places.sort_unstable();
    places
}

/// All members as the coordinator knows them.
fn names(world: &World, everybody: &Comm) -> Result<(Vec<[u8; 16]>, Vec<Members>)> {
    let mut worlds = vec![world.id()];
    let mut all: Vec<Members> = Vec::new();
    for &peer in everybody.group().members().iter() {
        let own = world.rank_of(peer).map(|rank| Name {
            world: world.id(),
            rank,
        });
        let name = own.or_else(|| joined::meeting(everybody)?.name_of(peer));
        let Some(Name { world: of, rank }) = name else {
            fail!(abi::MPI_ERR_INTERN, "a member of {} has no name", everybody.describe());
        };
        let number = worlds.iter().position(|known| *known == of).unwrap_or_else(|| {
            worlds.push(of);
            worlds.len() - 1
        }) as u16;
        match all.last_mut() {
            Some(last) if last.world == number && last.first + last.count == rank => last.count += 1,
            _ => all.push(Members {
                world: number,
                first: rank,
                count: 1,
            }),
        }
    }
    Ok((worlds, all))
}

/// Who has failed, of a communicator of this name.
fn failed(name: &str, agreed: &Agreed) -> EngineError {
    let ranks: Vec<String> = places(&agreed.lost).take(8).map(|place| place.to_string()).collect();
    let more = if places(&agreed.lost).nth(8).is_some() {
        " …"
    } else {
        ""
    };
    EngineError::Elsewhere {
        class: abi::MPIX_ERR_PROC_FAILED,
        text: format!(
            "members of {name} have failed (rank {}{more}), and not all others have acknowledged that (MPIX_Comm_ack_failed)",
            ranks.join(", ")
        )
        .into(),
    }
}

pub(super) fn refused(why: &str) -> EngineError {
    EngineError::Elsewhere {
        class: abi::MPI_ERR_OTHER,
        text: why.into(),
    }
}
