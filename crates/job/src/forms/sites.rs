// SPDX-License-Identifier: Apache-2.0
//! `--site` specifications: `NAME`, `NAME:N`, `ALIAS=CONTACT`, `ALIAS=CONTACT:N`, each with `,KEY=VALUE`s for its
//! scheduler: and how it may be reached ([`crate::network`]):
//! `lab:16,scheduler=slurm,queue=debug,nodes=2,limit=1h,account=p1,exclusive,directive=--constraint=fast`.

use crate::address::is_ipv6;
use crate::allocation;
use crate::asked;
use crate::attributes::{self, Content, Datum, Operator, Request, Shape};
use crate::error::JobError;
use crate::model::{Contact, Job, MAX_PROCESSES, Program, Section, Subjob, check_count, too_many};
use crate::network;
use crate::terms;
use crate::transfer::{Transfers, parse_shared};
use isthmus_wire::grid::{Allocation, Scheduler};
use isthmus_wire::word::counted;
use std::collections::BTreeMap;

/// One `--site`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteSpec {
    /// Name of the site in this job.
    pub name: String,
    /// How to get there.
    pub contact: Contact,
    /// Number of processes, when given.
    pub count: Option<u32>,
    /// What to ask of its scheduler, when one is named.
    pub allocation: Option<Allocation>,
    /// Whether it says `scheduler=fork`.
    pub forks: bool,
    /// On which terms it takes part, and on which MPI.
    pub requests: Vec<Request>,
    /// How it may be reached, as variables ([`crate::network`]).
    pub network: Vec<(String, String)>,
    /// What processes of other sites may open there, when it says so.
    pub shared: Vec<String>,
}

impl SiteSpec {
    /// Reads a specification.
    pub fn parse(text: &str) -> Result<Self, JobError> {
        Self::parse_known(text, &|_| None)
    }

    /// Reads a specification where the schedulers of some sites are known, by contact.
    pub fn parse_known(text: &str, known: &dyn Fn(&str) -> Option<Scheduler>) -> Result<Self, JobError> {
        let (text, options) = text.split_once(',').map_or((text, None), |(t, o)| (t, Some(o)));
        let (alias, rest) = match text.split_once('=') {
            Some((alias, rest)) => (Some(alias), rest),
            None => (None, text),
        };
        let (contact, count) = split_count(rest)?;
        if alias.is_some() && is_number(contact) {
            let problem = format!("'{contact}' in '{text}' is a number, not a host");
            let alias = alias.unwrap_or_default();
            return Err(JobError::new(problem).hint(format!(
                "the number of processes follows a colon: --site {alias}:{contact}"
            )));
        }
        if contact.is_empty() || alias == Some("") {
            return Err(JobError::new(format!("'{text}' names no site")).hint(FORMS));
        }
        let name = alias.unwrap_or(contact).to_owned();
        if let Some(count) = count {
            check_count(&name, count)?;
        }
        let (network, options) = network::split(&name, options)?;
        let SiteWishes {
            allocation,
            forks,
            requests,
            shared,
        } = options
            .map(|o| options_of(&name, &o, known(contact)))
            .transpose()?
            .unwrap_or_default();
        Ok(Self {
            contact: Contact::parse(contact)?,
            allocation,
            forks,
            requests,
            network,
            shared,
            name,
            count,
        })
    }
}

/// A number of processes as the user wrote it.
pub fn parse_count(text: &str) -> Result<u32, JobError> {
    parse_number(text, "-n")
}

/// A number of processes for each host or site as the user wrote it.
pub fn parse_each(text: &str) -> Result<u32, JobError> {
    parse_number(text, "-ppn")
}

fn parse_number(text: &str, option: &str) -> Result<u32, JobError> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits {
        let error = JobError::new(format!("'{text}' is not a number of processes"));
        return Err(error.hint(format!("write for example {option} 4")));
    }
    let count = text.parse().unwrap_or(u32::MAX);
    if count == 0 || count > MAX_PROCESSES {
        return Err(
            JobError::new(format!("{option} {text}: a job has 1 to {MAX_PROCESSES} processes"))
                .hint("ask for a number in that range"),
        );
    }
    Ok(count)
}

/// A number of nodes as the user wrote it.
fn parse_nodes(text: &str) -> Result<u32, JobError> {
    let nodes = text
        .parse()
        .ok()
        .filter(|n| is_number(text) && (1..=MAX_PROCESSES).contains(n));
    nodes.ok_or_else(|| {
        JobError::new(format!("'{text}' is not a number of nodes")).hint(format!(
            "write nodes= and a number from 1 to {MAX_PROCESSES}, for example nodes=4"
        ))
    })
}

/// What is worth knowing where a number of processes looks like a port: behind a user or an address in brackets, as in
/// `me@[fd00::2]:22`, users of ssh expect one.
pub fn port_note(host: &str) -> Option<JobError> {
    let (contact, count) = split_host(host);
    let count = count.filter(|count| matches!(*count, "22" | "222" | "2222"))?;
    let looks = !contact.contains("://") && (contact.contains('@') || contact.contains('['));
    looks.then(|| {
        JobError::new(format!("'{host}' asks for {count} processes on '{contact}'")).hint(format!(
            "for a port of ssh write ssh://{contact}:{count}, then the number of processes: ssh://{contact}:{count}:4"
        ))
    })
}

/// [`port_note`] for a `--site`.
pub fn port_note_of_site(text: &str) -> Option<JobError> {
    let named = text.split(',').next().unwrap_or_default();
    port_note(named.rsplit_once('=').map_or(named, |(_, contact)| contact))
}

/// One program on these sites; `total` processes are dealt out evenly to the sites without a count.
pub fn job_of_sites(sites: &[SiteSpec], total: Option<u32>, template: &Subjob) -> Result<Job, JobError> {
    let counts = deal(sites, total)?;
    let subjobs = sites.iter().zip(counts).map(|(site, count)| Subjob {
        site: site.name.clone(),
        lan: site.name.clone(),
        contact: site.contact.clone(),
        count,
        allocation: site.allocation.clone(),
        forks: site.forks,
        requests: requests(site, template),
        environment: [template.environment.clone(), site.network.clone()].concat(),
        files: Transfers {
            shared: match site.shared.is_empty() {
                true => template.files.shared.clone(),
                false => site.shared.clone(),
            },
            ..template.files.clone()
        },
        ..template.clone()
    });
    Job::new(subjobs.collect())
}

fn requests(site: &SiteSpec, template: &Subjob) -> Vec<Request> {
    let mut requests = template.requests.clone();
    requests.retain(|r| site.requests.iter().all(|own| own.attribute != r.attribute));
    requests.extend(site.requests.iter().cloned());
    attributes::sort(&mut requests);
    requests
}

/// A subjob at home to start from.
pub fn template(program: Program, arguments: Vec<String>) -> Subjob {
    Subjob {
        site: "home".into(),
        contact: Contact::Home,
        count: 1,
        lan: "home".into(),
        sections: vec![Section::only(program, arguments)],
        environment: Vec::new(),
        directory: None,
        allocation: None,
        forks: false,
        stage: true,
        requests: Vec::new(),
        setup: Vec::new(),
        files: Transfers::default(),
    }
}

/// Two subjobs on one site get names of their own: the second and further ones get a number.
pub(crate) fn name_apart(subjobs: &mut [Subjob]) {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for subjob in subjobs {
        let times = seen.entry(subjob.site.clone()).or_default();
        *times += 1;
        if *times > 1 {
            subjob.site = format!("{}#{times}", subjob.site);
        }
    }
}

/// What a site's options ask for.
#[derive(Default)]
struct SiteWishes {
    allocation: Option<Allocation>,
    forks: bool,
    requests: Vec<Request>,
    shared: Vec<String>,
}

/// `scheduler=slurm,queue=debug,...` and `mpi=mpiexec` after a site.
fn options_of(site: &str, options: &str, known: Option<Scheduler>) -> Result<SiteWishes, JobError> {
    let (mut requests, mut shared): (Vec<Request>, Vec<String>) = Default::default();
    let mut asked = Allocation::new(Scheduler::Slurm);
    let (mut scheduler, mut others, mut forks) = (known, false, false);
    for option in options.split(',') {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        if let Some(request) = term(key, value)? {
            match requests.iter_mut().find(|r| r.attribute == request.attribute) {
                Some(known) if known.attribute.shape == Shape::Texts => known.values.extend(request.values),
                Some(known) => *known = request,
                None => requests.push(request),
            }
            continue;
        }
        others |= !matches!(key, "scheduler" | "mpi" | "share");
        match key {
            "scheduler" => {
                scheduler = allocation::scheduler(value)?;
                forks = scheduler.is_none();
            }
            "queue" => asked.queue = value.to_owned(),
            "account" => asked.account = value.to_owned(),
            "limit" => asked.limit = allocation::limit(value)?,
            "nodes" => asked.nodes = parse_nodes(value)?,
            "exclusive" if value.is_empty() => asked.exclusive = true,
            "mpi" => attributes::ask_vendor(&mut requests, value),
            "share" => shared.push(parse_shared(value)?),
            "directive" => asked.directives.push(value.to_owned()),
            _ => {
                let problem = format!("site '{site}' has no option '{option}'");
                let pinned = network::KEYS.map(|(key, _)| format!("{key}="));
                return Err(JobError::new(problem).hint(format!("{OPTIONS}, {}", pinned.join(", "))));
            }
        }
    }
    attributes::sort(&mut requests);
    if scheduler.is_none() && others {
        return Err(asked::needs_scheduler(site));
    }
    Ok(SiteWishes {
        allocation: scheduler.map(|scheduler| Allocation { scheduler, ..asked }),
        forks,
        requests,
        shared,
    })
}

/// An option that says on which terms the subjob takes part; `substitute` is repeated for each.
fn term(key: &str, value: &str) -> Result<Option<Request>, JobError> {
    let key = match key {
        "substitute" => "substitutes",
        "start-timeout" => "start_timeout",
        "substitutes" => return Ok(None),
        other => other,
    };
    let Some(attribute) = terms::attribute(key) else {
        return Ok(None);
    };
    let datum = Datum {
        content: Content::Text(terms::value_of_attribute(key, value)?),
        span: 0..0,
    };
    let request = attribute.request(Operator::Equal, &[datum]);
    request
        .map(Some)
        .map_err(|(_, problem, _)| JobError::new(problem.replace(attribute.name, key)))
}

const OPTIONS: &str = "options are scheduler=, queue=, account=, limit=, nodes=, exclusive, directive=, start=, need=, \
    start_timeout=, substitute=, on_loss=, world=, stdin=, stdout=, stderr=, share=, mpi";

fn split_count(text: &str) -> Result<(&str, Option<u32>), JobError> {
    let (contact, count) = split_host(text);
    match count {
        None => Ok((contact, None)),
        // A number too large for its type is too large for a job, and is refused as that.
        Some(digits) if is_number(digits) => {
            let count = digits.parse().map_err(|_| too_many(digits))?;
            Ok((contact, Some(count)))
        }
        Some(other) => Err(JobError::new(format!("'{other}' in '{text}' is not a number of processes")).hint(FORMS)),
    }
}

pub(crate) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Takes a host and what stands behind its colon apart. An IPv6 address has colons of its own: with a number it stands
/// in brackets, as `[fd00::2]:4`. The first number behind a URL's host is its port: `ssh://me@host:22` has no number of
/// processes, `ssh://host:22:4` has.
pub(crate) fn split_host(text: &str) -> (&str, Option<&str>) {
    let user = text.find('@').map_or(0, |at| at + 1);
    if let Some(scheme) = text.find("://") {
        let host = scheme + 3;
        let bracket = text[host..].find(']').map_or(host, |at| host + at + 1);
        let mut colons = text[bracket..].match_indices(':').map(|(at, _)| bracket + at);
        let (port, count) = (colons.next(), colons.next());
        return match (port, count) {
            (Some(_), Some(at)) => (&text[..at], Some(&text[at + 1..])),
            _ => (text, None),
        };
    }
    if text[user..].starts_with('[') {
        return match text.find("]:") {
            Some(at) => (&text[..=at], Some(&text[at + 2..])),
            None => (text, None),
        };
    }
    if is_ipv6(&text[user..]) {
        return (text, None);
    }
    match text.rsplit_once(':') {
        Some((host, count)) => (host, Some(count)),
        None => (text, None),
    }
}

fn deal(sites: &[SiteSpec], total: Option<u32>) -> Result<Vec<u32>, JobError> {
    let given: u64 = sites.iter().filter_map(|s| s.count).map(u64::from).sum();
    let open = sites.iter().filter(|s| s.count.is_none()).count() as u64;
    let rest = match total {
        None => open,
        Some(total) => u64::from(total)
            .checked_sub(given)
            .ok_or_else(|| disagree(total, given))?,
    };
    if open == 0 && rest > 0 {
        return Err(disagree(total.unwrap_or(0), given));
    }
    if open > 0 && rest < open {
        let problem = format!(
            "-n leaves {} for {} without a number of their own",
            counted(rest, "process"),
            counted(open, "site")
        );
        return Err(JobError::new(problem).hint("raise -n or give every site a number: --site NAME:N"));
    }
    let mut next = 0;
    Ok(sites
        .iter()
        .map(|site| {
            site.count.unwrap_or_else(|| {
                let share = rest / open + u64::from(next < rest % open);
                next += 1;
                u32::try_from(share).unwrap_or(u32::MAX)
            })
        })
        .collect())
}

/// Gives every site without a number so many processes, or fewer at the end when there are fewer in all.
pub fn fill(sites: &mut [SiteSpec], total: Option<u32>, each: u32) -> Result<(), JobError> {
    let given: u32 = sites.iter().filter_map(|s| s.count).fold(0, u32::saturating_add);
    let mut left = total.map(|total| total.saturating_sub(given));
    let mut open = 0;
    for site in sites.iter_mut().filter(|s| s.count.is_none()) {
        open += 1;
        let count = left.map_or(each, |left| left.min(each));
        left = left.map(|left| left - count);
        if count > 0 {
            site.count = Some(count);
        }
    }
    match (left, total) {
        (Some(left), Some(total)) if left > 0 && open > 0 => {
            let problem = format!(
                "{} with {each} on each site: {left} more than there is room for",
                counted(total, "process")
            );
            Err(JobError::new(problem).hint("name more sites with --site, or raise the number for each"))
        }
        _ => Ok(()),
    }
}

fn disagree(total: u32, given: u64) -> JobError {
    JobError::new(format!(
        "-n asks for {} but the sites for {given}",
        counted(total, "process")
    ))
    .hint("leave out -n, or make the numbers agree")
}

const FORMS: &str =
    "write NAME:N, where NAME is 'home' or an ssh destination, or ALIAS=NAME:N; with a port it is ssh://NAME:PORT";

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> SiteSpec {
        SiteSpec::parse(text).unwrap()
    }

    #[test]
    fn what_a_site_shares_replaces_what_all_share() {
        let mut template = template(Program::one("./a"), vec![]);
        template.files.shared = vec!["/all".into()];
        let specs = [spec("home:1"), spec("lab:1,share=/data,share=~/x,start=loose")];
        let job = job_of_sites(&specs, None, &template).unwrap();
        let shared: Vec<&[String]> = job.subjobs().iter().map(|s| s.files.shared.as_slice()).collect();
        assert_eq!(
            shared,
            [["/all".to_owned()].as_slice(), &["/data".to_owned(), "~/x".to_owned()]]
        );
        for wrong in ["lab:1,share=", "lab:1,share", "lab:1,share=isthmus://lab/x"] {
            let error = SiteSpec::parse(wrong).unwrap_err().to_string();
            assert!(error.contains("to share"), "{wrong}: {error}");
        }
        template.files.shared = vec!["/x".into(); crate::transfer::MAX_SHARED + 1];
        let error = job_of_sites(&specs, None, &template).unwrap_err().to_string();
        assert!(error.contains("site 'home' shares more than 64 directories"), "{error}");
    }

    #[test]
    fn forms() {
        assert_eq!(
            spec("home:4"),
            SiteSpec {
                name: "home".into(),
                contact: Contact::Home,
                count: Some(4),
                allocation: None,
                forks: false,
                requests: Vec::new(),
                network: vec![],
                shared: vec![],
            }
        );
        assert_eq!(
            spec("b=home:2"),
            SiteSpec {
                name: "b".into(),
                contact: Contact::Home,
                count: Some(2),
                allocation: None,
                forks: false,
                requests: Vec::new(),
                network: vec![],
                shared: vec![],
            }
        );
        let lab = SiteSpec {
            name: "lab".into(),
            contact: Contact::Ssh("me@lab".into()),
            count: None,
            allocation: None,
            forks: false,
            requests: Vec::new(),
            network: vec![],
            shared: vec![],
        };
        assert_eq!(spec("lab=me@lab"), lab);
        assert_eq!(spec("[::1]").count, None);
        for (text, noted) in [
            ("me@[fd00::2]:22", true),
            ("[fd00::2]:2222", true),
            ("me@lab:22", true),
            ("lab:22", false),
            ("me@lab:4", false),
            ("ssh://me@lab:22", false),
            ("ssh://me@[fd00::2]:22:4", false),
        ] {
            assert_eq!(port_note(text).is_some(), noted, "{text}");
        }
        for (text, contact, count) in [
            ("fd00::2", "fd00::2", None),
            ("[fd00::2]", "fd00::2", None),
            ("[fd00::2]:4", "fd00::2", Some(4)),
            ("me@[fd00::2]:4", "me@fd00::2", Some(4)),
            ("ssh://lab:22", "ssh://lab:22", None),
            ("ssh://me@lab:22:4", "ssh://me@lab:22", Some(4)),
            ("ssh://[fd00::2]:22:4", "ssh://[fd00::2]:22", Some(4)),
        ] {
            let site = spec(text);
            assert_eq!(
                (site.contact, site.count),
                (Contact::Ssh(contact.into()), count),
                "{text}"
            );
        }
    }

    #[test]
    fn a_site_with_a_scheduler() {
        let site = spec("lab=me@lab:16,scheduler=slurm,queue=debug,limit=1h,nodes=2,exclusive,directive=--gres=gpu:1");
        let asked = site.allocation.unwrap();
        assert_eq!(
            (site.name.as_str(), site.count, asked.scheduler),
            ("lab", Some(16), Scheduler::Slurm)
        );
        assert_eq!(
            (asked.queue.as_str(), asked.limit, asked.nodes, asked.exclusive),
            ("debug", 3600, 2, true)
        );
        assert_eq!(asked.directives, ["--gres=gpu:1"]);
        assert_eq!(spec("lab,scheduler=fork").allocation, None);
        let texts = |s: SiteSpec| s.requests.iter().map(Request::text).collect::<Vec<_>>().join(" ");
        assert_eq!(texts(spec("home:2,mpi")), "jobType=mpi");
        assert_eq!(
            texts(spec("home:2,mpi=mpiexec.mpich")),
            "jobType=mpi mpiexec=mpiexec.mpich"
        );
        for (text, problem) in [
            ("lab,queue=debug", "names no scheduler"),
            ("lab,scheduler=slrum", "'slrum' is not a scheduler"),
            ("lab,colour=red", "has no option 'colour=red'"),
            ("lab,scheduler=slurm,limit=x", "'x' is not a time limit"),
        ] {
            let error = SiteSpec::parse(text).unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn bad_forms_name_the_text() {
        for text in [
            "",
            ":4",
            "=home",
            "a=:3",
            "lab:x",
            "lab:0",
            "lab:100000",
            "lab:99999999999",
            "-x:3",
            "a b:1",
            "b1=4",
            "b1=4:2",
            "lab:2:3",
            "me@lab:2:3",
            "4",
        ] {
            assert!(SiteSpec::parse(text).is_err(), "'{text}' was accepted");
        }
        let error = SiteSpec::parse("lab:99999999999").unwrap_err().to_string();
        assert!(error.contains("99999999999 processes are above"), "{error}");
    }

    #[test]
    fn processes_are_dealt_out() {
        let sites = [spec("home"), spec("a:3"), spec("b")];
        assert_eq!(deal(&sites, Some(8)), Ok(vec![3, 3, 2]));
        assert_eq!(deal(&sites, None), Ok(vec![1, 3, 1]));
        assert!(deal(&sites, Some(4)).is_err());
        assert!(deal(&sites, Some(2)).is_err());
        assert!(deal(&[spec("a:3")], Some(4)).is_err());
        assert_eq!(deal(&[spec("a:3")], Some(3)), Ok(vec![3]));
    }
}
