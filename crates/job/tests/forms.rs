// SPDX-License-Identifier: Apache-2.0
//! Any job comes back from every form that can say all of it; what a form cannot say is named.

use isthmus_job::attributes::{ATTRIBUTES, Fate, Request, Setting, Shape};
use isthmus_job::forms::{Form, Input};
use isthmus_job::rsl::{self, syntax::Operator};
use isthmus_job::{Allocation, Contact, Job, Program, Scheduler, Section, Subjob, sites};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// Texts with everything that needs quotes somewhere.
fn text() -> impl Strategy<Value = String> {
    let piece = select(vec![
        "a", "Z9", " ", "\t", "\n", "\"", "''", "\\", "#", "$(X)", "(*", "*)", "&+|", "^", "=", "é", "/x", "~",
        "\u{7f}",
    ]);
    vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn name() -> impl Strategy<Value = String> {
    "[a-z][a-z0-9._-]{0,6}"
}

fn contact() -> impl Strategy<Value = Contact> {
    prop_oneof![Just(Contact::Home), "([a-z]{1,3}@)?[a-h]{1,5}".prop_map(Contact::Ssh)]
}

fn allocation() -> impl Strategy<Value = Allocation> {
    let words = ("[a-z]{0,4}", "[a-z]{0,4}", vec("--[a-z]{1,5}=[a-z]", 0..2));
    (select(&Scheduler::ALL[..]), words, 0u32..9000, 0u32..2, any::<bool>()).prop_map(
        |(scheduler, (queue, account, directives), limit, nodes, exclusive)| Allocation {
            queue,
            account,
            limit,
            nodes,
            exclusive,
            directives,
            ..Allocation::new(scheduler)
        },
    )
}

/// One of the attributes that are kept whatever the contact says, with values of its form.
fn request() -> impl Strategy<Value = Request> {
    let operators = vec![Operator::Equal, Operator::Equal, Operator::NotEqual, Operator::AtLeast];
    let kept: Vec<_> = ATTRIBUTES
        .iter()
        .filter(|a| matches!(a.fate, Fate::Kept(_)) && !["label", "jobType"].contains(&a.name))
        .collect();
    (select(kept), select(operators), vec(text(), 2), 1u64..1_000_000).prop_map(|(attribute, operator, texts, n)| {
        let [first, second] = [0, 1].map(|i: usize| Setting::Text(texts[i].clone()));
        let values = match attribute.shape {
            Shape::Text => vec![first],
            Shape::Counted(_) | Shape::Number(_) => vec![Setting::Text(n.to_string())],
            Shape::YesNo => vec![Setting::Text("yes".into())],
            Shape::Word(words) => vec![Setting::Text(words[0].into())],
            Shape::Texts => vec![first, second],
            Shape::Pairs => vec![Setting::List(vec![first, second])],
            Shape::Places => vec![first.clone(), Setting::List(vec![first, second])],
        };
        Request {
            attribute,
            operator,
            values,
        }
    })
}

/// On which terms it takes part, as options of `--site`.
fn terms() -> impl Strategy<Value = Vec<Request>> {
    let start = select(vec!["start=strict", "start=loose", "start=none"]);
    let need = select(vec!["need=required", "need=interactive", "need=optional"]);
    let rest = select(vec![
        "start_timeout=90s,substitute=b,substitute=c/jobmanager-slurm",
        "on_loss=go-on,world=own,stdin=/i n,stdout=file:///o",
    ]);
    (start, need, rest).prop_map(|(start, need, rest)| {
        let text = format!("x,{start},{need},{rest}");
        sites::SiteSpec::parse(&text)
            .map(|spec| spec.requests)
            .unwrap_or_default()
    })
}

fn subjob() -> impl Strategy<Value = Subjob> {
    let scheduler = prop_oneof![
        Just((None, false)),
        Just((None, true)),
        allocation().prop_map(|a| (Some(a), false))
    ];
    let place = (name(), contact(), 1u32..5, option::of(name()), scheduler);
    let run = (
        vec(text(), 0..3),
        btree_map("[A-Z]{1,4}", text(), 0..3),
        option::of("/[a-z ]{1,6}"),
    );
    let rest = (
        any::<bool>(),
        0u32..2,
        (option::of(request()), option::of(terms())),
        "[./a-z ]{1,8}",
        (any::<bool>(), option::of(further())),
    );
    (place, run, rest).prop_map(
        |((site, contact, count, lan, (allocation, forks)), (arguments, environment, directory), rest)| {
            let (stage, appnum, (request, terms), program, (by_architecture, further)) = rest;
            let mut one = Program::one(program.clone());
            if by_architecture {
                one = Program {
                    any: None,
                    by_architecture: [("x86_64".to_owned(), program)].into(),
                };
            }
            let mut sections = vec![Section {
                appnum,
                ..Section::only(one, arguments)
            }];
            sections.extend(further.map(|section| Section {
                first: count,
                ..section
            }));
            Subjob {
                lan: lan.unwrap_or_else(|| site.clone()),
                contact,
                count: count + sections.len() as u32 - 1,
                allocation,
                forks,
                environment: environment.into_iter().collect(),
                directory,
                stage,
                requests: in_order(request.into_iter().chain(terms.into_iter().flatten()).collect()),
                ..sites::template(Program::default(), Vec::new())
            }
            .running(sections)
            .named(site)
        },
    )
}

/// In the order of the table, constraints last.
fn in_order(mut requests: Vec<Request>) -> Vec<Request> {
    let place = |r: &Request| ATTRIBUTES.iter().position(|a| a.name == r.attribute.name);
    requests.sort_by_key(|r| (r.operator != Operator::Equal, place(r)));
    requests
}

/// A second program of a subjob.
fn further() -> impl Strategy<Value = Section> {
    let run = (vec(text(), 0..3), btree_map("[A-D]{1,2}", text(), 0..3));
    ("[./a-z ]{1,8}", run, option::of("/?[a-z ]{1,6}"), 0u32..3).prop_map(
        |(program, (arguments, environment), directory, appnum)| Section {
            appnum,
            environment: environment.into_iter().collect(),
            directory,
            ..Section::only(Program::one(program), arguments)
        },
    )
}

trait Named {
    fn named(self, site: String) -> Self;
    fn running(self, sections: Vec<Section>) -> Self;
}

impl Named for Subjob {
    fn named(self, site: String) -> Self {
        Self { site, ..self }
    }

    fn running(self, sections: Vec<Section>) -> Self {
        Self { sections, ..self }
    }
}

/// Jobs of subjobs with names of their own.
fn job() -> impl Strategy<Value = Job> {
    vec(subjob(), 1..4).prop_filter_map("names are unique", |subjobs| Job::new(subjobs).ok())
}

/// Reads what a form says of a job.
fn again(form: Form, job: &Job) -> (Job, Vec<String>) {
    let written = form.write(job);
    let bindings = rsl::bindings(|_| None);
    // One program is named for all.
    let program = job.subjobs().first().map(|first| Subjob {
        sections: first.sections[..1].to_vec(),
        ..first.clone()
    });
    let input = Input {
        bindings: &bindings,
        program: program.as_ref().filter(|_| !form.names_program()),
        ..Input::of(&written.text, "again")
    };
    let described = form.read(&input).unwrap_or_else(|e| panic!("{e}\n{}", written.text));
    (described.job, written.lost)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_job_file_says_everything(job in job()) {
        let (read, lost) = again(Form::Toml, &job);
        prop_assert_eq!(lost, Vec::<String>::new());
        prop_assert_eq!(read, job);
    }

    #[test]
    fn rsl_says_everything_that_it_does_not_name_as_lost(job in job()) {
        let (read, lost) = again(Form::Rsl, &job);
        if lost.is_empty() {
            prop_assert_eq!(&read, &job);
        }
        // Nothing more is lost the second time.
        let (twice, lost) = again(Form::Rsl, &read);
        prop_assert_eq!(lost, Vec::<String>::new());
        prop_assert_eq!(twice, read);
    }

    #[test]
    fn machines_come_back_from_files_that_name_machines_only(job in job()) {
        for form in [Form::Pacx, Form::Machines, Form::Mpich, Form::OpenMpi, Form::Slurm] {
            let (read, lost) = again(form, &job);
            prop_assert_eq!(read.processes(), job.processes());
            if lost.len() == 1 {
                prop_assert_eq!(read, job.clone());
            }
            prop_assert!(lost[0].contains(form.name()));
        }
    }

    #[test]
    fn forms_are_told_apart(job in job()) {
        for form in [Form::Toml, Form::Rsl, Form::Pacx, Form::Machines, Form::OpenMpi, Form::Slurm] {
            prop_assert_eq!(Form::detect("x", &form.write(&job).text), form);
        }
    }

    #[test]
    fn quoting_is_undone(texts in vec(text(), 1..4)) {
        let request = format!("& (executable = x) (arguments = {})", rsl::words(&texts));
        let job = rsl::job(&request, "x", &[], None).unwrap().job;
        prop_assert_eq!(&job.subjobs()[0].sections[0].arguments, &texts);
    }

    #[test]
    fn no_text_is_too_strange(pieces in vec(select(vec![
        "(", ")", "&", "+", "|", "$", "#", "=", "!=", "\"", "'", "^", "(*", "*)", " ", "\n", "a", "count", "executable", "1",
        "environment", "rslSubstitution", "~", "é",
    ]), 0..40)) {
        let text = pieces.concat();
        let _ = rsl::parse(&text, "x");
        if let Err(errors) = rsl::job(&text, "x", &[], None) {
            prop_assert!(!errors.is_empty() && !errors.to_string().is_empty());
        }
    }
}

/// What random inputs have found.
#[test]
fn requests_that_did_not_come_back() {
    for text in [
        "& (executable = /x) (label < b) (label = c)",
        "& (executable = /x) (environment = (A 1) (B 2) (A 3))",
        "& (executable = /x) (resourceManagerContact = a/jobmanager-pbs) (hostCount = 99999999999) (maxTime = 1) (maxWallTime = 2)",
    ] {
        let job = rsl::job(text, "x", &[], None).unwrap_or_else(|e| panic!("{e}")).job;
        for form in [Form::Rsl, Form::Toml] {
            assert_eq!(again(form, &job), (job.clone(), Vec::new()), "{text}");
        }
    }
}

#[test]
fn depth_and_growth_are_bounded() {
    for text in [
        "(".repeat(100_000),
        "&(a=".to_owned() + &"(".repeat(100_000),
        "&(".repeat(100_000),
    ] {
        let errors = rsl::parse(&text, "deep.rsl").unwrap_err();
        assert!(errors.to_string().contains("nested deeper than 64"), "{errors}");
    }
    let mut bomb = "& (rslSubstitution = (A0 \"0123456789\")".to_owned();
    for i in 1..40 {
        let before = i - 1;
        bomb.push_str(&format!(" (A{i} $(A{before}) # $(A{before}))"));
    }
    bomb.push_str(") (executable = $(A39))");
    let errors = rsl::evaluate(&bomb, "bomb.rsl", &[]).unwrap_err();
    assert!(errors.to_string().contains("grows above"), "{errors}");
    let errors = rsl::parse(&"x".repeat(2 << 20), "long.rsl").unwrap_err();
    assert!(errors.to_string().contains("larger than"), "{errors}");
    let many = format!("& {}", "(count = x)".repeat(5000));
    let errors = rsl::job(&many, "many.rsl", &[], None).unwrap_err();
    assert!(errors.count() > 1000 && errors.to_string().lines().count() < 400);
}
