// SPDX-License-Identifier: Apache-2.0
//! A world whose parts are started by hand, in any order: which part is which, who is missing, and the job that all of
//! them are.

use crate::error::JobError;
use crate::model::{Contact, Job, MAX_PROCESSES, MAX_SUBJOBS, Program, Section, Subjob};
use crate::naming::{JobName, check_name};
use crate::program::MAX_SECTIONS;
use crate::transfer::Transfers;
use isthmus_wire::gathering::{Begin, Come, Member};
use isthmus_wire::word::counted;
use std::collections::{BTreeMap, BTreeSet};

/// Most parts of a world.
pub const MAX_PARTS: u32 = 256;

/// Which part of which world this is: `NAME=2of3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldPart {
    /// Name of the world.
    pub world: JobName,
    /// Which part, from 1.
    pub part: u32,
    /// How many there are.
    pub of: u32,
}

impl WorldPart {
    /// What follows `--world`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, JobError> {
        let wrong = |why: &str| {
            JobError::new(format!("--world {}: {why}", crate::quoted::shown(text)))
                .hint("write NAME=PARTofPARTS, for example --world ocean=2of3")
        };
        let (name, numbers) = text
            .split_once('=')
            .ok_or_else(|| wrong("it does not say which part this is"))?;
        let (part, of) = numbers
            .split_once("of")
            .ok_or_else(|| wrong("it does not say how many parts there are"))?;
        let number = |text: &str| text.parse::<u32>().ok().filter(|n| *n > 0);
        let (Some(part), Some(of)) = (number(part), number(of)) else {
            return Err(wrong(&format!("parts are numbers from 1 to {MAX_PARTS}")));
        };
        if part > of {
            return Err(wrong(&format!("there is no part {part} of {of}")));
        }
        if of > MAX_PARTS {
            return Err(wrong(&format!("a world has at most {MAX_PARTS} parts")));
        }
        let world = JobName::parse(name).map_err(|error| wrong(&error.problem))?;
        Ok(Self { world, part, of })
    }
}

impl std::fmt::Display for WorldPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}of{}", self.world, self.part, self.of)
    }
}

/// A part as it tells others of itself.
pub fn come(world: Option<&WorldPart>, job: &Job, host: &str, machine: [u8; 32]) -> Come {
    Come {
        world: world.map(|w| w.world.to_string()).unwrap_or_default(),
        part: world.map_or(0, |w| w.part),
        of: world.map_or(0, |w| w.of),
        host: host.to_owned(),
        machine,
        members: job.subjobs().iter().map(member).collect(),
    }
}

fn member(subjob: &Subjob) -> Member {
    Member {
        site: subjob.site.clone(),
        lan: subjob.lan.clone(),
        count: subjob.count,
        programs: subjob.numbers(),
        home: subjob.contact == Contact::Home,
    }
}

/// A part as it is, before others come to it.
///
/// # Errors
/// What it asks for that parts cannot have.
pub fn check(job: &Job) -> Result<(), JobError> {
    let subjobs = job.subjobs().iter();
    if let Some(subjob) = subjobs.clone().find(|s| s.vendor().is_some()) {
        let problem = format!(
            "site '{}': a part of a world that is put together by hand cannot run on the machine's own MPI",
            subjob.site
        );
        return Err(JobError::new(problem).hint("leave out 'mpi' (jobType=mpi); or make it one job of several sites"));
    }
    Ok(())
}

/// The parts of a world that are there.
#[derive(Debug)]
pub struct Gathering {
    world: WorldPart,
    parts: BTreeMap<u32, Come>,
}

impl Gathering {
    /// With the part of whoever gathers.
    pub fn new(world: WorldPart, own: Come) -> Self {
        let parts = [(world.part, own)].into();
        Self { world, parts }
    }

    /// Takes one more part in; gives its number.
    ///
    /// # Errors
    /// Why it cannot be one, for its user.
    pub fn admit(&mut self, mut come: Come) -> Result<u32, String> {
        let WorldPart { world, of, .. } = &self.world;
        if !come.world.is_empty() && come.world != world.as_str() {
            return Err(format!(
                "the ticket is for the world '{world}', not for '{}'",
                come.world
            ));
        }
        if come.of != 0 && come.of != *of {
            return Err(format!(
                "the world '{world}' has {of} parts, not {}: write --world {world}=PARTof{of}",
                come.of
            ));
        }
        let part = match come.part {
            0 => (1..=*of).find(|part| !self.parts.contains_key(part)),
            part => Some(part),
        };
        let part = part.ok_or_else(|| format!("all {of} parts of the world '{world}' are there already"))?;
        if part > *of {
            return Err(format!("the world '{world}' has {of} parts: there is no part {part}"));
        }
        if let Some(there) = self.parts.get(&part) {
            let then = match self.missing().as_slice() {
                [] => "no part is missing".to_owned(),
                missing => format!("it waits for {}", parts(missing)),
            };
            return Err(format!(
                "part {part} of the world '{world}' is there already: it was started on {}; {then}",
                there.host
            ));
        }
        check_come(&come)?;
        let all = self.parts.values().chain([&come]).flat_map(|part| &part.members);
        let total: u64 = all.clone().map(|member| u64::from(member.count)).sum();
        if total > u64::from(MAX_PROCESSES) || all.count() > MAX_SUBJOBS {
            return Err(format!(
                "with it the world '{world}' would have {total} processes; at most {MAX_PROCESSES} at {MAX_SUBJOBS} sites are possible"
            ));
        }
        come.part = part;
        self.parts.insert(part, come);
        Ok(part)
    }

    /// A part has gone before the world was complete.
    pub fn leave(&mut self, part: u32) {
        if part != self.world.part {
            self.parts.remove(&part);
        }
    }

    /// Parts that are missing.
    pub fn missing(&self) -> Vec<u32> {
        (1..=self.world.of)
            .filter(|part| !self.parts.contains_key(part))
            .collect()
    }

    /// Where a part was started.
    pub fn host(&self, part: u32) -> &str {
        self.parts.get(&part).map_or("", |come| &come.host)
    }

    /// The job of all parts. `own`: what whoever gathers brings. For each subjob of another part: its part, its number
    /// there, its number in the job and its first rank.
    ///
    /// # Errors
    /// They cannot be one job.
    pub fn job(&self, own: &Job) -> Result<(Job, Vec<PartSubjob>), JobError> {
        let mut names = Names::new(self.parts.get(&self.world.part));
        let (mut subjobs, mut places) = (Vec::new(), Vec::new());
        let (mut first, mut appnum) = (0, 0);
        for (&part, come) in &self.parts {
            for (index, member) in come.members.iter().enumerate() {
                let mut subjob = match part == self.world.part {
                    true => own.subjobs()[index].clone(),
                    false => {
                        places.push(PartSubjob {
                            part,
                            index,
                            number: subjobs.len(),
                            first,
                        });
                        called(part, come, member, &mut names)
                    }
                };
                for section in &mut subjob.sections {
                    section.appnum += appnum;
                }
                first += member.count;
                subjobs.push(subjob);
            }
            let programs = come.members.iter().flat_map(|member| &member.programs);
            appnum += programs.map(|(_, appnum)| appnum + 1).max().unwrap_or(0);
        }
        Ok((own.with_subjobs(subjobs)?, places))
    }
}

/// A subjob of another part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartSubjob {
    /// Which part.
    pub part: u32,
    /// Its number there.
    pub index: usize,
    /// Its number in the job.
    pub number: usize,
    /// Its first rank.
    pub first: u32,
}

/// Which names are taken, and what the local areas of machines are called.
struct Names {
    sites: BTreeSet<String>,
    lans: BTreeSet<String>,
    machines: BTreeMap<[u8; 32], String>,
}

impl Names {
    /// Those of whoever gathers stay.
    fn new(own: Option<&Come>) -> Self {
        let members = || own.into_iter().flat_map(|come| &come.members);
        let home = members().find(|member| member.home);
        Self {
            sites: members().map(|member| member.site.clone()).collect(),
            lans: members().map(|member| member.lan.clone()).collect(),
            machines: own
                .zip(home)
                .map(|(come, home)| (come.machine, home.lan.clone()))
                .into_iter()
                .collect(),
        }
    }

    fn free(taken: &mut BTreeSet<String>, wanted: &str, part: u32) -> String {
        let further = (1..).map(|more| match more {
            1 => format!("{wanted}.{part}"),
            more => format!("{wanted}.{part}.{more}"),
        });
        let mut names = std::iter::once(wanted.to_owned()).chain(further);
        let name = names.find(|name| !taken.contains(name)).unwrap_or_default();
        taken.insert(name.clone());
        name
    }
}

/// A subjob that its own launcher starts.
fn called(part: u32, come: &Come, member: &Member, names: &mut Names) -> Subjob {
    let host: String = come
        .host
        .chars()
        .filter(|c| !c.is_whitespace() && !c.is_control())
        .collect();
    // Each user's own machine is called home by that user.
    let called_home = |name: &str| match name {
        "home" if member.home && !host.is_empty() => host.clone(),
        name => name.to_owned(),
    };
    let lan = match names.machines.get(&come.machine).filter(|_| member.home) {
        Some(lan) => lan.clone(),
        None => Names::free(&mut names.lans, &called_home(&member.lan), part),
    };
    if member.home {
        names.machines.entry(come.machine).or_insert_with(|| lan.clone());
    }
    let sections = member.programs.iter().map(|&(first, appnum)| Section {
        first,
        appnum,
        ..Section::only(Program::one(format!("(part {part})")), Vec::new())
    });
    Subjob {
        site: Names::free(&mut names.sites, &called_home(&member.site), part),
        contact: Contact::Part(part),
        count: member.count,
        lan,
        sections: sections.collect(),
        environment: Vec::new(),
        directory: None,
        allocation: None,
        forks: true,
        stage: false,
        requests: Vec::new(),
        setup: Vec::new(),
        files: Transfers::default(),
    }
}

/// What a part tells of itself comes from outside.
fn check_come(come: &Come) -> Result<(), String> {
    if come.members.is_empty() {
        return Err("it brings no processes".to_owned());
    }
    if come.host.len() > crate::naming::MAX_NAME {
        return Err("the name of its machine is too long".to_owned());
    }
    for member in &come.members {
        check_name("site", &member.site).map_err(|error| error.problem)?;
        check_name("lan", &member.lan).map_err(|error| error.problem)?;
        crate::model::check_count(&member.site, member.count).map_err(|error| error.problem)?;
        let most = MAX_SUBJOBS * MAX_SECTIONS;
        if let Some((_, appnum)) = member.programs.iter().find(|(_, appnum)| *appnum as usize >= most) {
            return Err(format!("program {appnum} of a part"));
        }
    }
    Ok(())
}

/// A subjob of a part as it is called in the job of all; nothing: there is none of that number.
pub fn renamed(own: &Job, begin: &Begin) -> Option<Subjob> {
    let subjob = own.subjobs().get(begin.subjob as usize)?;
    let sound = check_name("site", &begin.site).and_then(|()| check_name("lan", &begin.lan));
    sound.ok()?;
    Some(Subjob {
        site: begin.site.clone(),
        lan: begin.lan.clone(),
        ..subjob.clone()
    })
}

/// Numbers of parts, for people: `part 2`, `parts 2, 3 and 5`.
pub fn parts(numbers: &[u32]) -> String {
    match numbers {
        [] => counted(0, "part"),
        [one] => format!("part {one}"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(u32::to_string).collect();
            format!("parts {} and {last}", first.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::subjob;

    fn part(part: u32, host: &str, members: &[(&str, u32)]) -> Come {
        let own = |(site, count): &(&str, u32)| Subjob {
            contact: match *site {
                "home" => Contact::Home,
                other => Contact::Ssh(other.to_owned()),
            },
            ..subjob(site, *count)
        };
        let job = Job::new(members.iter().map(own).collect()).unwrap();
        let mut machine = [0; 32];
        machine[..host.len()].copy_from_slice(host.as_bytes());
        Come {
            part,
            ..come(None, &job, host, machine)
        }
    }

    fn gathering(text: &str, host: &str) -> (Gathering, Job) {
        let world = WorldPart::parse(text).unwrap();
        let own = Job::new(vec![subjob("home", 2)]).unwrap();
        let come = part(world.part, host, &[("home", 2)]);
        (Gathering::new(world, come), own)
    }

    #[test]
    fn words_say_which_part_it_is() {
        let world = WorldPart::parse("ocean=2of3").unwrap();
        assert_eq!((world.part, world.of, world.to_string().as_str()), (2, 3, "ocean=2of3"));
        for (wrong, part) in [
            ("ocean", "which part"),
            ("ocean=2", "how many"),
            ("ocean=0of3", "from 1"),
            ("ocean=4of3", "no part 4 of 3"),
            ("ocean=xof3", "from 1"),
            ("ocean=1of1000", "at most 256"),
            ("=1of2", "empty"),
        ] {
            let error = WorldPart::parse(wrong).unwrap_err();
            assert!(error.problem.contains(part), "{wrong}: {}", error.problem);
        }
    }

    #[test]
    fn ranks_follow_the_parts_whoever_comes_first() {
        let (mut gathering, own) = gathering("ocean=2of3", "desk");
        assert_eq!(gathering.missing(), [1, 3]);
        assert_eq!(gathering.admit(part(3, "lab", &[("home", 4)])), Ok(3));
        assert_eq!(gathering.admit(part(0, "desk", &[("home", 1), ("far", 5)])), Ok(1));
        assert!(gathering.missing().is_empty());
        let (job, places) = gathering.job(&own).unwrap();
        let named: Vec<_> = job
            .subjobs()
            .iter()
            .map(|s| (s.site.as_str(), s.lan.as_str(), s.count, s.sections[0].appnum))
            .collect();
        // Two parts on one machine are in one local area; another machine's home has the name of its host.
        assert_eq!(
            named,
            [
                ("desk", "home", 1, 0),
                ("far", "far", 5, 0),
                ("home", "home", 2, 1),
                ("lab", "lab", 4, 2)
            ]
        );
        let firsts: Vec<_> = places.iter().map(|p| (p.part, p.index, p.number, p.first)).collect();
        assert_eq!(firsts, [(1, 0, 0, 0), (1, 1, 1, 1), (3, 0, 3, 8)]);
        assert_eq!(job.subjobs()[3].contact, Contact::Part(3));
    }

    #[test]
    fn programs_of_all_parts_are_numbered_in_their_order() {
        let (mut gathering, own) = gathering("ocean=2of2", "desk");
        let mut first = part(1, "lab", &[("home", 5)]);
        first.members[0].programs = vec![(0, 0), (2, 1), (3, 0)];
        assert_eq!(gathering.admit(first), Ok(1));
        let (job, _) = gathering.job(&own).unwrap();
        assert_eq!(job.subjobs()[0].numbers(), [(0, 0), (2, 1), (3, 0)]);
        assert_eq!(job.subjobs()[1].numbers(), [(0, 2)]);
        let mut wrong = part(1, "lab", &[("home", 5)]);
        wrong.members[0].programs = vec![(0, u32::MAX)];
        assert!(check_come(&wrong).is_err());
    }

    #[test]
    fn names_that_two_parts_use_are_told_apart() {
        let (mut gathering, own) = gathering("ocean=1of3", "desk");
        gathering.admit(part(2, "a", &[("home", 1), ("lab", 1)])).unwrap();
        gathering.admit(part(3, "a", &[("home", 1), ("lab", 1)])).unwrap();
        let (job, _) = gathering.job(&own).unwrap();
        let named: Vec<_> = job
            .subjobs()
            .iter()
            .map(|s| (s.site.as_str(), s.lan.as_str()))
            .collect();
        assert_eq!(
            named,
            [
                ("home", "home"),
                ("a", "a"),
                ("lab", "lab"),
                ("a.3", "a"),
                ("lab.3", "lab.3")
            ]
        );
    }

    #[test]
    fn what_cannot_be_a_part_is_refused() {
        let (mut gathering, _) = gathering("ocean=1of2", "desk");
        let mut refused = |come: Come, why: &str| {
            let error = gathering.admit(come).unwrap_err();
            assert!(error.contains(why), "{error}");
        };
        refused(part(1, "a", &[("home", 1)]), "is there already: it was started on desk");
        refused(part(3, "a", &[("home", 1)]), "there is no part 3");
        let two = |change: fn(&mut Come)| {
            let mut come = part(2, "a", &[("home", 1)]);
            change(&mut come);
            come
        };
        refused(two(|come| come.of = 3), "has 2 parts, not 3");
        refused(two(|come| come.world = "sea".into()), "not for 'sea'");
        refused(two(|come| come.members.clear()), "no processes");
        refused(two(|come| come.members[0].site = "a b".into()), "white space");
        refused(two(|come| come.members[0].count = 5000), "limit of 4096");
        refused(two(|come| come.members[0].count = 0), "asked for 0");
        refused(
            two(|come| come.members = vec![come.members[0].clone(); 2000]),
            "at 1024 sites",
        );
        assert_eq!(gathering.admit(part(0, "a", &[("home", 1)])), Ok(2));
        let error = gathering.admit(part(0, "b", &[("home", 1)])).unwrap_err();
        assert!(error.contains("all 2 parts"), "{error}");
        gathering.leave(2);
        gathering.leave(1);
        assert_eq!(gathering.missing(), [2]);
    }
}
