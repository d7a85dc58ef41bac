// SPDX-License-Identifier: Apache-2.0
//! On which terms a subjob takes part in a job: what the attributes `subjobStartType`, `subjobCommsType`, `subjobNeed`,
//! `subjobStartTimeout`, `subjobSubstitutes` and `subjobOnLoss` say.
//!
//! | start | the barrier of the job | world |
//! |---|---|---|
//! | strict | opens when every strict subjob is there | that of the job |
//! | loose | takes part when it is there in time, and is let through when it comes later | that of the job; late, its own |
//! | none | waits for nobody but its own processes | its own |
//!
//! A subjob that is `independent` takes part in the barrier and has a world of its own. What is needed of a subjob says
//! what its failure before its barrier means: a required one ends the job, the user is asked about an interactive one,
//! the job goes on without an optional one. Substitutes are tried first, in order. What its loss, or that of one of its
//! processes, means later says [`OnLoss`].

use crate::contact::{self, Contact};
use crate::error::JobError;
use crate::subjob::Subjob;
use crate::{allocation, attributes};
use isthmus_wire::grid::{Allocation, Scheduler};
use std::time::Duration;

/// Most substitutes of a subjob.
pub const MAX_SUBSTITUTES: usize = 64;

/// What a subjob has to do with the barrier of the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartType {
    /// The job does not begin without it.
    #[default]
    Strict,
    /// The job begins without it when it is late.
    Loose,
    /// It begins when its own processes are there.
    NoBarrier,
}

/// What it means when a subjob fails before it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Need {
    /// The job ends.
    #[default]
    Required,
    /// The user is asked.
    Interactive,
    /// The job goes on without it.
    Optional,
}

/// What it means when a process that has begun is lost: it was killed, ended without MPI_Finalize, or its machine or
/// site cannot be reached any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// The job ends.
    #[default]
    End,
    /// The other processes hear of it and go on.
    GoOn,
}

impl OnLoss {
    /// The word for it, which is also a value of `ISTHMUS_ON_LOSS`.
    pub fn word(self) -> &'static str {
        match self {
            Self::End => "end",
            Self::GoOn => GO_ON,
        }
    }

    /// What a word says.
    pub fn parse(text: &str) -> Result<Self, JobError> {
        match text {
            "end" => Ok(Self::End),
            GO_ON => Ok(Self::GoOn),
            _ => Err(JobError::new(format!(
                "what happens when a process is lost is one of end and {GO_ON}, not '{text}'"
            ))),
        }
    }

    /// Says so of a subjob.
    pub fn set(self, subjob: &mut Subjob) {
        attributes::ask(&mut subjob.requests, ON_LOSS, self.word());
    }
}

const GO_ON: &str = "go-on";
/// The attribute that says it.
const ON_LOSS: &str = "subjobOnLoss";

/// The terms of one subjob.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// What it has to do with the barrier.
    pub start: StartType,
    /// Whether its processes have a world of their own whatever its start.
    pub independent: bool,
    /// What its failure means.
    pub need: Need,
    /// How long it may take to be there.
    pub timeout: Option<Duration>,
    /// Where else it may run, in the order of preference.
    pub substitutes: Vec<Substitute>,
    /// What it means when one of its processes is lost, if the job says that.
    pub on_loss: Option<OnLoss>,
}

/// Another place for a subjob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Substitute {
    /// How it is reached.
    pub contact: Contact,
    /// The scheduler there.
    pub scheduler: Option<Scheduler>,
    /// Whether it is said that there shall be none.
    pub forks: bool,
}

/// The attributes, and the keys of a job file and options of `--site` that say the same.
pub(crate) const KEYS: [(&str, &str); 9] = [
    ("start", "subjobStartType"),
    ("world", "subjobCommsType"),
    ("need", "subjobNeed"),
    ("start_timeout", "subjobStartTimeout"),
    ("substitutes", "subjobSubstitutes"),
    ("on_loss", ON_LOSS),
    ("stdin", "stdin"),
    ("stdout", "stdout"),
    ("stderr", "stderr"),
];

/// Words of a key where they differ from those of its attribute.
const WORDS: [(&str, &str, &str); 5] = [
    ("start", "strict", "strict-barrier"),
    ("start", "loose", "loose-barrier"),
    ("start", "none", "no-barrier"),
    ("world", "joint", "blocking-join"),
    ("world", "own", "independent"),
];

/// The attribute that a key stands for.
pub(crate) fn attribute(key: &str) -> Option<&'static attributes::Attribute> {
    let (_, name) = KEYS.iter().find(|(k, _)| *k == key)?;
    attributes::find(name)
}

/// The key that stands for an attribute.
pub(crate) fn key(attribute: &str) -> Option<&'static str> {
    KEYS.iter().find(|(_, name)| *name == attribute).map(|(key, _)| *key)
}

/// What the value of a key is as that of its attribute.
pub(crate) fn value_of_attribute(key: &str, text: &str) -> Result<String, JobError> {
    if key == "start_timeout" {
        return allocation::limit(text).map(|seconds| seconds.to_string());
    }
    let words = || WORDS.iter().filter(|(k, _, _)| *k == key);
    match words().find(|(_, word, _)| *word == text) {
        Some((_, _, meaning)) => Ok((*meaning).to_owned()),
        None if words().next().is_some() => {
            let known: Vec<&str> = words().map(|(_, word, _)| *word).collect();
            Err(JobError::new(format!(
                "'{key}' is one of {}, not '{text}'",
                known.join(", ")
            )))
        }
        None => Ok(text.to_owned()),
    }
}

/// What the value of an attribute is as that of its key.
pub(crate) fn value_of_key(key: &str, text: &str) -> String {
    if key == "start_timeout" {
        return format!("{text}s");
    }
    let word = WORDS.iter().find(|(k, _, meaning)| *k == key && *meaning == text);
    word.map_or(text, |(_, word, _)| word).to_owned()
}

impl Substitute {
    /// From a contact string: what ssh takes, `/jobmanager-SCHEDULER` behind it, or home.
    pub fn parse(text: &str) -> Result<Self, JobError> {
        let gram = contact::parse(text)?;
        let scheduler = gram.scheduler.as_deref().map(allocation::scheduler).transpose()?;
        Ok(Self {
            contact: gram.contact,
            forks: scheduler == Some(None),
            scheduler: scheduler.flatten(),
        })
    }

    /// The subjob at this place. What it asked of a scheduler is asked of the one there.
    pub fn apply(&self, subjob: &Subjob) -> Subjob {
        let asked = self.scheduler.map(|scheduler| match &subjob.allocation {
            Some(allocation) => Allocation {
                scheduler,
                ..allocation.clone()
            },
            None => Allocation::new(scheduler),
        });
        Subjob {
            contact: self.contact.clone(),
            allocation: asked,
            forks: self.forks,
            ..subjob.clone()
        }
    }
}

impl std::fmt::Display for Substitute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&contact::write(
            &self.contact,
            self.scheduler
                .map(Scheduler::keyword)
                .or_else(|| self.forks.then_some(allocation::FORK)),
        ))
    }
}

impl Terms {
    /// Those of a subjob, or what is wrong with them.
    pub fn of(subjob: &Subjob) -> Result<Self, JobError> {
        let start = match subjob.request("subjobStartType") {
            Some("loose-barrier") => StartType::Loose,
            Some("no-barrier") => StartType::NoBarrier,
            _ => StartType::Strict,
        };
        let need = match subjob.request("subjobNeed") {
            Some("required") => Need::Required,
            Some("interactive") => Need::Interactive,
            Some("optional") => Need::Optional,
            _ if start == StartType::Strict => Need::Required,
            _ => Need::Optional,
        };
        let timeout = subjob.request("subjobStartTimeout").and_then(|t| t.parse().ok());
        let substitutes = subjob.request_texts("subjobSubstitutes");
        if substitutes.len() > MAX_SUBSTITUTES {
            let problem = format!("site '{}': more than {MAX_SUBSTITUTES} substitutes", subjob.site);
            return Err(JobError::new(problem));
        }
        let wrong = |error: JobError| JobError {
            problem: format!("site '{}': {}", subjob.site, error.problem),
            ..error
        };
        let substitutes = substitutes.iter().map(|text| Substitute::parse(text).map_err(wrong));
        let on_loss = subjob.request(ON_LOSS).map(OnLoss::parse).transpose()?;
        Ok(Self {
            start,
            independent: subjob.request("subjobCommsType") == Some("independent"),
            need,
            timeout: timeout.map(Duration::from_secs),
            substitutes: substitutes.collect::<Result<_, _>>()?,
            on_loss,
        })
    }

    /// Whether the job goes on when a process of the subjob is lost.
    pub fn goes_on(&self) -> bool {
        self.on_loss == Some(OnLoss::GoOn)
    }

    /// Whether the subjob takes part in the world of the job when it is there in time.
    pub fn joins(&self) -> bool {
        !self.independent && self.start != StartType::NoBarrier
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forms::sites::SiteSpec;
    use crate::model::tests::subjob;

    fn terms(options: &str) -> Terms {
        let spec = SiteSpec::parse(&format!("a:2,{options}")).unwrap();
        let mut subjob = subjob("a", 2);
        subjob.requests = spec.requests;
        Terms::of(&subjob).unwrap()
    }

    #[test]
    fn a_subjob_is_strict_and_required_unless_it_says_otherwise() {
        assert_eq!(Terms::of(&subjob("a", 1)), Ok(Terms::default()));
        assert_eq!(terms("start=loose").need, Need::Optional);
        assert_eq!(terms("start=none,need=required").need, Need::Required);
        let all = terms("need=optional,start_timeout=20s,substitute=b/jobmanager-slurm,substitute=home,world=own");
        assert_eq!((all.timeout, all.independent), (Some(Duration::from_secs(20)), true));
        assert_eq!((terms("on_loss=go-on").goes_on(), all.goes_on()), (true, false));
        let places: Vec<String> = all.substitutes.iter().map(Substitute::to_string).collect();
        assert_eq!(places, ["b/jobmanager-slurm", "home"]);
    }

    #[test]
    fn what_is_asked_of_a_scheduler_goes_with_the_subjob() {
        let mut one = subjob("a", 2);
        one.allocation = Some(Allocation {
            limit: 60,
            ..Allocation::new(Scheduler::Slurm)
        });
        let moved = Substitute::parse("b/jobmanager-sge").unwrap().apply(&one);
        let asked = moved.allocation.unwrap();
        assert_eq!((asked.scheduler, asked.limit), (Scheduler::GridEngine, 60));
        let plain = Substitute::parse("b").unwrap().apply(&one);
        assert_eq!((plain.allocation, plain.site.as_str()), (None, "a"));
    }
}
