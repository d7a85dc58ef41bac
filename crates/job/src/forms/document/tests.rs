// SPDX-License-Identifier: Apache-2.0

use super::*;

const GOOD: &str = r#"
program = "./climate"
arguments = ["--years", "20"]
environment = { A = "1" }

[[subjob]]
site = "home"
count = 4

[[subjob]]
site = "lab"
contact = "me@lab"
count = 16
lan = "campus"
program.x86_64 = "./climate-x"
environment.B = "2"
directory = "run"
"#;

fn error(text: &str) -> String {
    parse(text, "job.toml", None).unwrap_err().to_string()
}

#[test]
fn a_program_has_a_name() {
    let text = "program = \"\"\n[[subjob]]\nsite = \"home\"\ncount = 1\n";
    let error = error(text);
    assert!(error.contains("the name of the program is empty"), "{error}");
}

#[test]
fn a_good_file() {
    let job = parse(GOOD, "job.toml", None).unwrap();
    let [home, lab] = job.subjobs() else { panic!("{job:?}") };
    assert_eq!(
        (home.count, home.lan.as_str(), &home.contact),
        (4, "home", &Contact::Home)
    );
    assert_eq!(home.sections[0].program, Program::one("./climate"));
    assert_eq!(
        (lab.count, lab.lan.as_str(), &lab.contact),
        (16, "campus", &Contact::Ssh("me@lab".into()))
    );
    assert_eq!(lab.sections[0].program.for_architecture("x86_64"), Some("./climate-x"));
    assert_eq!(lab.sections[0].program.for_architecture("s390x"), None);
    assert_eq!(lab.environment, [("A".into(), "1".into()), ("B".into(), "2".into())]);
    assert_eq!(
        (lab.sections[0].arguments.len(), lab.directory.as_deref()),
        (2, Some("run"))
    );
}

#[test]
fn syntax_errors_have_line_and_column() {
    let text = error("program = \"./a\"\n[[subjob]\nsite = \"home\"\n");
    assert!(text.starts_with("job.toml:2:9: "), "{text}");
    assert!(text.contains(" 2 | [[subjob]\n   |         ^"), "{text}");
}

#[test]
fn mistakes_are_named_where_they_are() {
    let head = "program = \"./a\"\n[[subjob]]\n";
    for (body, start) in [
        (
            "site = \"home\"\ncuont = 4\n",
            "job.toml:4:1: unknown key 'cuont' in a subjob",
        ),
        (
            "site = \"home\"\ncount = \"4\"\n",
            "job.toml:4:9: 'count' must be a number, this is a string",
        ),
        (
            "site = \"home\"\ncount = 0\n",
            "job.toml:4:9: site 'home' is asked for 0 processes",
        ),
        (
            "site = \"home\"\ncount = -1\n",
            "job.toml:4:9: site 'home' is asked for -1 processes",
        ),
        (
            "site = \"home\"\ncount = 100000\n",
            "job.toml:4:9: 100000 processes are above the limit",
        ),
        ("count = 4\n", "job.toml:2:1: this subjob lacks 'site'"),
        ("site = \"-x\"\n", "job.toml:3:8: '-x' is not an ssh destination"),
        (
            "site = \"home\"\narguments = [1]\n",
            "job.toml:4:14: an argument must be a text",
        ),
        (
            "site = \"home\"\n[[subjob]]\nsite = \"home\"\n",
            "job.toml:5:8: site 'home' is named twice",
        ),
    ] {
        let text = error(&format!("{head}{body}"));
        assert!(text.starts_with(start), "{body}: {text}");
    }
    assert!(error("[[subjob]]\nsite = \"home\"\n").contains("has no program"));
    assert!(error("program = \"a\"\n").contains("there is no [[subjob]]"));
    assert!(error("program = \"a\"\n[subjob]\nsite=\"home\"\n").contains("double brackets"));
    assert!(error("program = 3\n").contains("'program' must be a text"));
    assert!(error("zzz = 3\n").contains("known keys: arguments, directory"));
}

#[test]
fn a_subjob_for_a_scheduler() {
    let head = "program = \"a\"\n[[subjob]]\nsite = \"lab\"\ncount = 4\n";
    let body = "scheduler = \"grid-engine\"\nqueue = \"all.q\"\naccount = \"p\"\nlimit = \"30min\"\nnodes = 2\nexclusive = true\n\
                directives = [\"-l\", \"mem=1G\"]\n";
    let job = parse(&format!("{head}{body}"), "j", None).unwrap();
    let asked = job.subjobs()[0].allocation.clone().unwrap();
    assert_eq!(
        (asked.scheduler.keyword(), asked.limit, asked.nodes),
        ("grid-engine", 1800, 2)
    );
    assert!(asked.exclusive && job.spans_nodes() && asked.directives == ["-l", "mem=1G"]);
    for (body, problem) in [
        ("queue = \"q\"\n", "j:5:9: site 'lab' asks for a queue"),
        ("scheduler = \"slum\"\n", "j:5:13: 'slum' is not a scheduler"),
        ("scheduler = \"pbs\"\nlimit = \"1\"\n", "j:6:9: '1' is not a time limit"),
        ("scheduler = \"pbs\"\nnodes = 0\n", "j:6:9: site 'lab' is asked for 0"),
        (
            "scheduler = \"pbs\"\nexclusive = 1\n",
            "j:6:13: 'exclusive' must be true or false",
        ),
        ("scheduler = \"pbs\"\nnodes = 9\n", "5 processes"),
    ] {
        let text = error(&format!("{head}{body}")).replace("job.toml", "j");
        assert!(
            text.starts_with(problem) || problem == "5 processes" && text.contains("9 nodes for 4 processes"),
            "{body}: {text}"
        );
    }
}

#[test]
fn files_of_the_job_or_of_each_site() {
    let with = |value: &str| format!("program = \"a\"\nfiles = {value}\n[[subjob]]\nsite = \"lab\"\n");
    let job = parse(&with("\"local\""), "j", None).unwrap();
    let expected = ("ISTHMUS_FILE_SCOPE".to_owned(), "local".to_owned());
    assert_eq!(job.subjobs()[0].environment, [expected]);
    assert!(error(&with("\"mine\"")).starts_with("job.toml:2:9: files = 'mine' means nothing"));
    assert!(error(&with("3")).starts_with("job.toml:2:9: "));
    let text = error("program = \"a\"\n[[subjob]]\nsite = \"lab\"\nfiles = \"local\"\n");
    assert!(text.contains("files"), "{text}");
}

#[test]
fn inline_subjobs_work_too() {
    let job = parse(
        "program = \"a\"\nsubjob = [{ site = \"home\", count = 2 }]\n",
        "j",
        None,
    )
    .unwrap();
    assert_eq!(job.processes(), 2);
}

#[test]
fn links_are_pinned_by_site_or_local_area() {
    let link = |a: &str, b: &str| format!("{GOOD}\n[[link]]\nbetween = [\"{a}\", \"{b}\"]\nlatency = \"7 ms\"\n");
    for names in [["home", "lab"], ["campus", "home"]] {
        let job = parse(&link(names[0], names[1]), "job.toml", None).unwrap();
        let number = |name: &str| job.local_areas().iter().position(|(n, _)| *n == name).map(|n| n as u32);
        let estimates = job.links().pinned(isthmus_topology::LinkEstimates::default(), number);
        assert_eq!(estimates.links().pair(0, 1).latency, 7_000_000);
    }
    assert!(error(&link("lab", "campus")).contains("'between' must name two different sites"));
    assert!(error(&link("lab", "nowhere")).contains("'between' must name two different sites"));
    assert!(error(&format!("{GOOD}\n[level.wide]\nrate = \"5\"\n")).contains("'5' is not a rate"));
}

#[test]
fn all_mistakes_of_a_file_are_told() {
    let text = "progam = \"a\"\narguments = [1]\n[[subjob]]\nsite = \"a\"\ncount = 0\nstage = 1\n[[subjob]]\nlan = 3\n\
                [[subjob]]\nsite = \"b\"\nprogram = \"b\"\nappnum = -1\nrequests = [\"queue\", \"x\"]\n";
    let errors = error(text);
    for place in ["1:1", "2:14", "3:1", "5:9", "6:9", "7:1", "8:7", "12:10", "13:13"] {
        assert!(
            errors.contains(&format!("job.toml:{place}: ")),
            "{place} is not in\n{errors}"
        );
    }
    let order: Vec<usize> = parse(text, "j", None)
        .unwrap_err()
        .iter()
        .filter_map(|e| Some(e.location.as_ref()?.line))
        .collect();
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn the_example_says_everything() {
    let job = parse(EXAMPLE, "example.toml", None).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(job.processes(), 36);
    for key in TOP_KEYS
        .iter()
        .chain(&SUBJOB_KEYS)
        .filter(|k| !["level", "process"].contains(k))
    {
        let named = |line: &str| {
            let table = [format!("[[{key}]]"), format!("[[subjob.{key}]]")];
            line.starts_with(&format!("{key} =")) || table.iter().any(|table| line.starts_with(table))
        };
        assert!(EXAMPLE.lines().any(named), "{key} is missing");
    }
}

#[test]
fn requests_of_rsl() {
    let text = "program = \"a\"\nrequests = [\"queue=fast\", \"min_memory >= 5\"]\nstage = false\n\
                [[subjob]]\nsite = \"a\"\n[[subjob]]\nsite = \"b\"\nrequests = [\"QUEUE=slow\"]\nstage = true\nappnum = 2\n";
    let job = parse(text, "j", None).unwrap_or_else(|e| panic!("{e}"));
    let texts = |i: usize| job.subjobs()[i].requests.iter().map(Request::text).collect::<Vec<_>>();
    assert_eq!(texts(0), ["queue=fast", "minMemory>=5"]);
    assert_eq!(texts(1), ["queue=slow", "minMemory>=5"]);
    let rest = |i: usize| (job.subjobs()[i].stage, job.subjobs()[i].sections[0].appnum);
    assert_eq!((rest(0), rest(1)), ((false, 0), (true, 2)));
    for (request, part) in [
        ("count=3", "about nothing that can be asked for so"),
        ("restart=x", "cannot be met"),
        ("maxTime=soon", "'maxTime' is a whole number"),
        ("&(queue=a)(queue=b)", "more than one relation"),
    ] {
        let errors = error(&format!(
            "program = \"a\"\nrequests = [\"{request}\"]\n[[subjob]]\nsite = \"a\"\n"
        ));
        assert!(errors.contains(part), "{request}: {errors}");
    }
}

#[test]
fn a_key_in_the_wrong_place_is_told_where_it_belongs() {
    let misplaced = "program = \"a\"\nbind_to = \"core\"\n[[subjob]]\nsite = \"home\"\nfiles = \"local\"\n";
    let errors = parse(misplaced, "j", None).unwrap_err().to_string();
    assert!(errors.contains("write bind_to in each [[subjob]]"), "{errors}");
    assert!(errors.contains("write files at the top of the file"), "{errors}");
    let unquoted = parse("program = \u{201c}a\u{201d}\n", "j", None)
        .unwrap_err()
        .to_string();
    assert!(unquoted.contains("straight quotes"), "{unquoted}");
}

#[test]
fn sections_say_what_their_subjob_does_not() {
    let text = "arguments = [\"x\"]\nenvironment = { A = \"1\" }\n[[subjob]]\nsite = \"home\"\n\
                [[subjob.section]]\nprogram = \"./a\"\ncount = 3\n\
                [[subjob.section]]\nprogram = \"./b\"\narguments = []\nenvironment = { A = \"2\" }\ndirectory = \"d\"\n\
                [[subjob.section]]\nprogram.x86_64 = \"./c\"\nappnum = 9\n";
    let job = parse(text, "j", None).unwrap_or_else(|e| panic!("{e}"));
    let subjob = &job.subjobs()[0];
    assert_eq!((subjob.count, subjob.numbers()), (5, vec![(0, 0), (3, 1), (4, 9)]));
    let [a, b, c] = &subjob.sections[..] else {
        panic!("{subjob:?}")
    };
    assert_eq!((a.arguments.len(), b.arguments.len(), c.arguments.len()), (1, 0, 1));
    assert_eq!(b.environment, [("A".to_owned(), "2".to_owned())]);
    assert_eq!(subjob.environment, [("A".to_owned(), "1".to_owned())]);
    assert_eq!(b.directory.as_deref(), Some("d"));
    for (lines, part) in [
        (
            "count = 2\n[[subjob.section]]\nprogram = \"a\"\n",
            "subjob 'home' has sections and 'count'",
        ),
        ("[[subjob.section]]\n", "subjob 'home' has no program"),
        (
            "[[subjob.section]]\nprogram = \"a\"\ncount = 0\n",
            "asked for 0 processes",
        ),
        (
            "[[subjob.section]]\nprogram = \"a\"\nqueue = \"x\"\n",
            "write it in the [[subjob]]",
        ),
        ("section = []\n", "subjob 'home' has no program"),
        (
            "[[subjob.section]]\nprogram = \"a\"\n[[subjob.section]]\nprogram = \"b\"\nenvironment = { ISTHMUS_STATS = \"1\" }\n",
            "ISTHMUS_STATS cannot be set for one program",
        ),
    ] {
        let errors = error(&format!("[[subjob]]\nsite = \"home\"\n{lines}"));
        assert!(errors.contains(part), "{part} is not in\n{errors}");
    }
}
