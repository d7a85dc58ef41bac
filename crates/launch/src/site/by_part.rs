// SPDX-License-Identifier: Apache-2.0
//! The task of a subjob whose launcher is another part.

use super::{Site, broken, next_bytes};
use crate::claims::Claims;
use crate::happening::SiteEvent;
use crate::parts::Line;
use isthmus_reach::Failure;
use isthmus_wire::gathering::{Begin, Said, ToPart};
use isthmus_wire::grid::{FromAgent, VERSION};
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a part has to end a subjob that the job does not want any more.
const PARTING: Duration = Duration::from_secs(8);

impl Site {
    /// The task of a subjob whose launcher is another part: until that says that it has ended, or is gone.
    pub(crate) async fn run_by_part(mut self, mut commands: mpsc::UnboundedReceiver<Vec<u8>>) -> Failure {
        let Some(mut line) = self.shared.gathered.take(self.number) else {
            let problem = "it was started by hand on another machine, and cannot be started again from here";
            return Failure::new(problem, "").finally();
        };
        if line.out.send(ToPart::Begin(self.begin(&line)).encode()).await.is_err() {
            return line.lost();
        }
        let mut last = std::mem::replace(&mut self.last, mpsc::unbounded_channel().1);
        let (out, subjob) = (line.out.clone(), line.index);
        let writing = async {
            loop {
                let bytes = next_bytes(&mut commands, &mut last).await;
                // Without the length that it has on a stream of its own.
                let Some(message) = bytes.and_then(|bytes| Some(bytes.get(4..)?.to_vec())) else {
                    break;
                };
                if out.send(ToPart::Tell { subjob, message }.encode()).await.is_err() {
                    break;
                }
            }
            std::future::pending::<()>().await;
        };
        let (mut lost, mut leaving) = (self.lost.clone(), self.leaving.clone());
        let given_up = async {
            let _ = leaving.wait_for(|leaving| *leaving).await;
            tokio::time::sleep(PARTING).await;
        };
        tokio::select! {
            failure = self.hear_part(&mut line) => failure,
            () = writing => Failure::closed(),
            Ok(_) = lost.wait_for(|lost| *lost) => Failure::closed(),
            () = given_up => Failure::closed(),
        }
    }

    fn begin(&self, line: &Line) -> Begin {
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Begin {
            subjob: line.index,
            number: number(self.number),
            first: line.first,
            planned: number(self.shared.planned),
            silence: u32::try_from(self.shared.options.silence.as_secs()).unwrap_or(u32::MAX),
            job: self.shared.job.clone(),
            site: self.subjob.site.clone(),
            lan: self.subjob.lan.clone(),
            gateway: self.gateway.as_ref().map(|g| g.first.clone()).unwrap_or_default(),
            only_way: self.gateway.as_ref().is_some_and(|g| g.is_only_way),
        }
    }

    /// What the part says of the subjob.
    async fn hear_part(&self, line: &mut Line) -> Failure {
        let mut claims = Claims::new(&self.subjob);
        while let Some(said) = line.said.recv().await {
            match said {
                Said::Progress => self.tell(SiteEvent::Progress),
                Said::Staging(how) => self.tell(SiteEvent::Staging(how)),
                Said::Serving => self.tell(SiteEvent::Serving),
                Said::Notice(text) => self.tell(SiteEvent::Notice(isthmus_reach::plain(&text))),
                Said::Closed(problem, hint) => {
                    return Failure::new(isthmus_reach::plain(&problem), isthmus_reach::plain(&hint));
                }
                Said::Message(body) => match FromAgent::decode(&body) {
                    Ok(FromAgent::Gone) => return Failure::closed(),
                    Ok(FromAgent::Hello(hello)) if hello.version == VERSION => {
                        self.tell(SiteEvent::Hello(Box::new(hello)));
                    }
                    Ok(message) => match claims.check(&message) {
                        Ok(()) => self.tell(SiteEvent::Message(message)),
                        Err(what) => return Failure::new(broken(&what), ""),
                    },
                    Err(error) => return Failure::new(format!("its agent sent nonsense: {error}"), ""),
                },
            }
        }
        line.lost()
    }
}
