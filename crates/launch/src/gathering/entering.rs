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

/// What each of our subjobs needs to begin, once all parts are there.
pub(super) async fn all_begin(stream: &mut DuplexStream, job: &Job) -> Result<Vec<Begin>, Outcome> {
    let count = job.subjobs().len();
    let mut begins = BTreeMap::new();
    while begins.len() < count {
        let body = receive(stream, LONGEST).await.map_err(|_| gone())?;
        match ToPart::decode(&body) {
            Ok(ToPart::Begin(begin)) if (begin.subjob as usize) < count => drop(begins.insert(begin.subjob, begin)),
            Ok(ToPart::Refused(why)) => return Err(turned_away(&why)),
            Ok(ToPart::Over { status, problem, hint }) => return Err(over(status, &problem, &hint)),
            _ => return Err(nonsense()),
        }
    }
    Ok(begins.into_values().collect())
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
