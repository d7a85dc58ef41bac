// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::forms::sites::{SiteSpec, job_of_sites, template};
use crate::model::Program;

fn job(catalogue: &Catalogue, sites: &[&str]) -> Result<Job, JobError> {
    let known = |site: &str| catalogue.scheduler(site);
    let sites: Vec<SiteSpec> = sites
        .iter()
        .map(|s| SiteSpec::parse_known(s, &known).unwrap())
        .collect();
    let job = job_of_sites(&sites, None, &template(Program::one("./a"), vec![]))?;
    catalogue.complete(job)
}

const FILE: &str = r#"
[site.lab]                      # mine
contact = "me@login.lab"
scheduler = "slurm"
queue = "debug"
limit = "1h"
modules = ["gcc/13"]
setup = [". ~/env"]
lan = "campus"
processes = 8
ports = "5000-5010"
environment = { A = "1" }

[site.next]
lan = "campus"

[[link]]
between = ["campus", "home"]
latency = "20 ms"
"#;

#[test]
fn a_job_gets_what_is_known_of_its_sites() {
    let catalogue = parse(FILE, "sites.toml").unwrap();
    let job = job(&catalogue, &["home:1", "lab:4", "next:2", "other:1"]).unwrap();
    let lab = &job.subjobs()[1];
    assert_eq!(lab.contact, Contact::Ssh("me@login.lab".into()));
    let asked = lab.allocation.as_ref().unwrap();
    assert_eq!((asked.queue.as_str(), asked.limit), ("debug", 3600));
    assert_eq!((lab.lan.as_str(), job.subjobs()[2].lan.as_str()), ("campus", "campus"));
    assert_eq!(lab.setup.last().unwrap(), ". ~/env");
    assert!(lab.setup[1].starts_with("module load gcc/13"));
    assert!(lab.environment.contains(&(PORTS.into(), "5000-5010".into())));
    assert_eq!(job.subjobs()[3].contact, Contact::Ssh("other".into()));
    assert_ne!(*job.links(), Pins::default());
}

#[test]
fn what_the_job_says_counts() {
    let catalogue = parse(FILE, "sites.toml").unwrap();
    let job = job(&catalogue, &["lab:4,queue=long", "x=me@login.lab:2"]).unwrap();
    assert_eq!(job.subjobs()[0].allocation.as_ref().unwrap().queue, "long");
    assert_eq!(
        job.subjobs()[1].allocation,
        None,
        "reached by its contact it is another site"
    );
    let error = self::job(&catalogue, &["lab:9"]).unwrap_err();
    assert!(error.to_string().contains("limit of 8"), "{error}");
}

#[test]
fn the_example_says_everything() {
    let catalogue = parse(EXAMPLE, "example.toml").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(catalogue.sites().count(), 2);
    for key in KEYS.iter().filter(|k| **k != "found") {
        assert!(
            EXAMPLE.lines().any(|l| l.starts_with(&format!("{key} ="))),
            "{key} is missing"
        );
    }
}

#[test]
fn fork_is_a_word_too() {
    let catalogue = parse(FILE, "sites.toml").unwrap();
    let at_once = job(&catalogue, &["lab:4,scheduler=fork"]).unwrap();
    let lab = &at_once.subjobs()[0];
    assert_eq!((lab.allocation.clone(), lab.scheduler()), (None, Some("fork")));
    assert_eq!(lab.contact, Contact::Ssh("me@login.lab".into()));
    let rsl = "&(resourceManagerContact=lab/jobmanager-fork)(count=1)(executable=a)";
    let read = crate::forms::Form::Rsl
        .read(&crate::forms::Input::of(rsl, "job.rsl"))
        .unwrap();
    assert_eq!(catalogue.complete(read.job).unwrap().subjobs()[0].allocation, None);
}

#[test]
fn a_job_file_may_ask_for_what_the_site_is_known_to_have() {
    let catalogue = parse(FILE, "sites.toml").unwrap();
    let read = |text: &str| crate::forms::document::parse(text, "job.toml", Some(&catalogue));
    let job = read("program = \"a\"\n[[subjob]]\nsite = \"lab\"\ncount = 2\nqueue = \"long\"\n").unwrap();
    let job = catalogue.complete(job).unwrap();
    let asked = job.subjobs()[0].allocation.as_ref().unwrap();
    assert_eq!((asked.queue.as_str(), asked.limit), ("long", 3600));
    let errors = read("program = \"a\"\n[[subjob]]\nsite = \"next\"\nqueue = \"long\"\n").unwrap_err();
    assert!(errors.to_string().contains("names no scheduler"), "{errors}");
}

#[test]
fn a_substitute_is_what_is_known_of_it() {
    let catalogue = parse(FILE, "sites.toml").unwrap();
    let plain = job(&Catalogue::default(), &["other:2"]).unwrap().subjobs()[0].clone();
    let mut moved = crate::Substitute::parse("lab").unwrap().apply(&plain);
    catalogue.complete_subjob(&mut moved).unwrap();
    assert_eq!(moved.contact, Contact::Ssh("me@login.lab".into()));
    assert_eq!((moved.site.as_str(), moved.scheduler()), ("other", Some("slurm")));
    assert!(!moved.setup.is_empty());
}

#[test]
fn all_errors_at_once_with_their_places() {
    let text =
        "[site.lab]\ncontcat = \"x\"\nscheduler = \"slrum\"\n[site.\"a b\"]\nports = \"9-1\"\nprocesses = 0\n[sit]\n";
    let errors = parse(text, "sites.toml").unwrap_err();
    let text = errors.to_string();
    for part in [
        "sites.toml:2:1",
        "did you mean 'contact'?",
        "3:13",
        "'slrum'",
        "4:7",
        "5:9",
        "6:13",
        "7:2",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    assert!(text.contains("^^^"));
}

#[test]
fn adding_keeps_what_the_user_wrote() {
    let text = "# my sites\n[site.lab]\n# do not touch\nqueue = \"long\" # slow\nscheduler = \"slurm\"\n";
    let mut edit = Edit::new(text, "sites.toml").unwrap();
    let found = [("cores".to_owned(), Value::Number(8))];
    edit.describe(
        "lab",
        &[("queue", Value::Text("debug".into())), ("lan", Value::Text("x".into()))],
        &found,
    );
    edit.describe("new", &[("contact", Value::Text("me@new".into()))], &[]);
    let text = edit.text();
    for part in [
        "# my sites",
        "# do not touch",
        "queue = \"long\" # slow",
        "lan = \"x\"",
        "[site.lab.found]",
        "[site.new]",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    edit.set(
        "lab",
        &[("queue", Value::Text("short".into())), ("nodes", Value::Number(2))],
    );
    assert!(edit.text().contains("queue = \"short\" # slow") && edit.text().contains("nodes = 2"));
    for wrong in [
        "limit=soon",
        "exclusive=maybe",
        "nodes=two",
        "ports=1",
        "scheduler=slrum",
        "contact=-x",
        "queeu=a",
    ] {
        assert!(setting(wrong).is_err(), "{wrong}");
    }
    let catalogue = parse(&text, "sites.toml").unwrap();
    assert_eq!(catalogue.get("new").unwrap().contact, Contact::Ssh("me@new".into()));
    assert_eq!(
        catalogue.get("lab").unwrap().found,
        [("cores".to_owned(), Value::Number(8))]
    );
    assert!(edit.remove("lab") && !edit.remove("lab"));
    assert!(parse(&edit.text(), "sites.toml").unwrap().get("lab").is_none());
}
