// SPDX-License-Identifier: Apache-2.0
//! How a part comes in, and hears that all are there.

use crate::Outcome;
use crate::parts::here::{host, machine};
use crate::parts::stream::{LONGEST, receive, send};
use isthmus_job::Job;
use isthmus_job::gathering::{WorldPart, come};
use isthmus_wire::gathering::{Begin, FromPart, ToPart, VERSION};
use isthmus_wire::port::PortName;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::io::DuplexStream;

/// How long whoever gathers may take to let this part in.
const ADMISSION: Duration = Duration::from_secs(20);

/// Shows the ticket; gives which part this is of how many.
pub(super) async fn enter(
    job: &Job,
    ticket: &PortName,
    part: Option<&WorldPart>,
    connected: Result<DuplexStream, String>,
) -> Result<(DuplexStream, u32, u32), Outcome> {
    let unreached = |why: String| Outcome {
        unreached: true,
        hint: "the part that was started first must still wait, and its machine be reached from here: ISTHMUS_ADDRESS \
               there names the address, ISTHMUS_PORTS the ports"
            .to_owned(),
        ..Outcome::failure(format!("the other parts of the world are not reached: {why}"))
    };
    let mut stream = connected.map_err(unreached)?;
    let knock = FromPart::Knock {
        version: VERSION,
        secret: ticket.secret,
    };
    let come = FromPart::Come(come(part, job, &host(), machine()));
    let talked = async {
        send(&mut stream, &knock.encode()).await?;
        send(&mut stream, &come.encode()).await?;
        receive(&mut stream, LONGEST).await
    };
    let body = match tokio::time::timeout(ADMISSION, talked).await {
        Ok(Ok(body)) => body,
        Ok(Err(error)) => return Err(unreached(format!("they have closed the connection ({error})"))),
        Err(_) => return Err(unreached(format!("no answer for {} s", ADMISSION.as_secs()))),
    };
    match ToPart::decode(&body) {
        Ok(ToPart::Admitted { part, of }) => Ok((stream, part, of)),
        Ok(ToPart::Refused(why)) => Err(turned_away(&why)),
        _ => Err(nonsense()),
    }
}

pub(super) fn turned_away(why: &str) -> Outcome {
    Outcome::failure(format!(
        "the other parts do not take this one: {}",
        isthmus_reach::plain(why)
    ))
}

pub(super) fn nonsense() -> Outcome {
    Outcome {
        hint: "use the same isthmus for all parts".to_owned(),
        ..Outcome::failure("the first part of the world sent invalid data".to_owned())
    }
}

pub(super) fn gone() -> Outcome {
    Outcome::failure("the launcher of the part that was started first is gone, and the job with it".to_owned())
}

/// What was said to the agent of a subjob before all of its part have begun.
#[derive(Debug)]
pub(super) struct Early {
    pub(super) subjob: u32,
    pub(super) message: Vec<u8>,
}

/// All parts are there, and the subjobs of this one begin.
#[derive(Debug)]
pub(super) struct Beginning {
    /// What each of them needs.
    pub(super) begins: Vec<Begin>,
    /// At most [`LONGEST`] bytes.
    pub(super) early: Vec<Early>,
}

/// Waits until all of `count` subjobs begin. One after the other does: the first may be spoken to before the last.
pub(super) async fn all_begin(stream: &mut DuplexStream, count: usize) -> Result<Beginning, Outcome> {
    let (mut begins, mut early, mut bytes) = (BTreeMap::new(), Vec::new(), 0);
    while begins.len() < count {
        let body = receive(stream, LONGEST).await.map_err(|_| gone())?;
        bytes += body.len();
        match ToPart::decode(&body) {
            Ok(ToPart::Begin(begin)) if (begin.subjob as usize) < count => drop(begins.insert(begin.subjob, begin)),
            Ok(ToPart::Tell { subjob, message }) if begins.contains_key(&subjob) && bytes <= LONGEST => {
                early.push(Early { subjob, message });
            }
            Ok(ToPart::Refused(why)) => return Err(turned_away(&why)),
            Ok(ToPart::Over { status, problem, hint }) => return Err(over(status, &problem, &hint)),
            _ => return Err(nonsense()),
        }
    }
    let begins = begins.into_values().collect();
    Ok(Beginning { begins, early })
}

pub(super) fn over(status: i32, problem: &str, hint: &str) -> Outcome {
    Outcome {
        status,
        began: true,
        problem: Some(isthmus_reach::plain(problem)).filter(|text| !text.is_empty()),
        hint: isthmus_reach::plain(hint),
        ..Outcome::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::duplex;

    fn begin(subjob: u32) -> ToPart {
        ToPart::Begin(Begin {
            subjob,
            number: subjob,
            first: 0,
            planned: 2,
            silence: 30,
            job: "isthmus-a".to_owned(),
            site: "home".to_owned(),
            lan: String::new(),
            gateway: Vec::new(),
            only_way: false,
        })
    }

    fn tell(subjob: u32, length: usize) -> ToPart {
        let message = vec![7; length];
        ToPart::Tell { subjob, message }
    }

    async fn hear(said: Vec<ToPart>) -> Result<Beginning, Outcome> {
        let (mut ours, mut theirs) = duplex(1 << 20);
        let say = async move {
            for message in said {
                // Whoever hears nonsense hears no more.
                let _ = send(&mut theirs, &message.encode()).await;
            }
        };
        tokio::join!(all_begin(&mut ours, 2), say).0
    }

    #[tokio::test]
    async fn a_subjob_is_spoken_to_before_the_next_one_begins() {
        let heard = hear(vec![begin(1), tell(1, 3), begin(0), tell(0, 1)]).await.unwrap();
        let order: Vec<u32> = heard.begins.iter().map(|begin| begin.subjob).collect();
        assert_eq!(order, [0, 1]);
        let early: Vec<_> = heard
            .early
            .iter()
            .map(|early| (early.subjob, early.message.len()))
            .collect();
        assert_eq!(early, [(1, 3)]);
    }

    #[tokio::test]
    async fn nobody_is_spoken_to_before_it_begins_nor_for_ever() {
        for said in [
            vec![tell(0, 3)],
            vec![begin(0), tell(1, 3)],
            vec![begin(2)],
            vec![begin(0), tell(0, LONGEST / 2), tell(0, LONGEST / 2)],
        ] {
            let outcome = hear(said).await.unwrap_err();
            assert!(outcome.problem.unwrap().contains("invalid data"));
        }
    }
}
