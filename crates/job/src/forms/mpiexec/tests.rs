// SPDX-License-Identifier: Apache-2.0
//! Command lines, and what comes of them.

use super::*;

/// Files, and whether we are inside an allocation of two nodes of four slots.
struct Files(bool);

impl Outside for Files {
    fn read(&mut self, path: &str) -> Result<String, String> {
        match path {
            "hosts" => Ok("a:2\nb:2\n".into()),
            "mine" => Ok("me:2\n::1\na\n".into()),
            "config" => Ok("# two\n-n 1 ./a\n\n-n 2 ./b x # y\n".into()),
            _ => Err("no such file".into()),
        }
    }
    fn variable(&mut self, name: &str) -> Option<String> {
        (name == "SET").then(|| "yes".into())
    }
    fn is_own(&mut self, host: &str) -> bool {
        ["me", "127.0.0.1", "::1"].contains(&host)
    }
    fn parts(&mut self, part: HardwareType) -> usize {
        if part == HardwareType::Socket { 2 } else { 8 }
    }
    fn allocated(&mut self) -> Result<Option<(Vec<Host>, String)>, JobErrors> {
        Ok(self.0.then(|| {
            let text = "SLURM_JOB_NODELIST=n[1-2]\nSLURM_TASKS_PER_NODE=4(x2)\nSLURMD_NODENAME=n1\n";
            crate::forms::allocated(text).unwrap()
        }))
    }
}

fn words(line: &str) -> Result<Request, JobErrors> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    parse(&words, &mut Files(false))
}

fn counts(line: &str) -> Vec<(String, u32, u32)> {
    let Ok(Request::Run { described, .. }) = words(line) else {
        panic!("{line} was refused")
    };
    described
        .job
        .subjobs()
        .iter()
        .map(|s| (s.site.clone(), s.count, s.sections[0].appnum))
        .collect()
}

fn subjob(line: &str) -> Subjob {
    let Ok(Request::Run { described, .. }) = words(line) else {
        panic!("{line} was refused")
    };
    described.job.subjobs()[0].clone()
}

#[test]
fn behind_two_hyphens_stands_the_program() {
    let subjob = subjob("-n 2 -- -odd -n 7");
    assert_eq!(
        (subjob.sections[0].program.clone(), subjob.count),
        (Program::one("-odd"), 2)
    );
    assert_eq!(subjob.sections[0].arguments, ["-n", "7"]);
    assert!(words("-n 2 --").is_err());
}

#[test]
fn plain() {
    let subjob = subjob("-separate -n 4 -wdir /tmp -env A 1 --genv B 2 -x SET -x C=3 ./a -n 7 : x");
    assert_eq!((subjob.count, subjob.directory.as_deref()), (4, Some("/tmp")));
    assert_eq!(subjob.sections[0].arguments, ["-n", "7"]);
    let names: Vec<_> = subjob.environment.iter().map(|(n, v)| format!("{n}={v}")).collect();
    assert_eq!(names, ["B=2", "A=1", "SET=yes", "C=3"]);
}

#[test]
fn a_variable_is_that_of_one_program() {
    let Ok(Request::Run { described, .. }) =
        words("-separate -n 1 -x A=1 -x SET ./a : -n 1 -x A=2 -envlist SET ./a : -genvlist SET ./b")
    else {
        panic!("refused")
    };
    let all = |s: &Subjob| {
        s.environment
            .iter()
            .map(|(n, v)| format!("{n}={v}"))
            .collect::<Vec<_>>()
    };
    let all: Vec<_> = described.job.subjobs().iter().map(all).collect();
    assert_eq!(all, [vec!["A=1", "SET=yes"], vec!["A=2", "SET=yes"], vec!["SET=yes"]]);
}

#[test]
fn directories_are_shared_as_isthmus_run_shares_them() {
    let shared = |line: &str| subjob(line).files.shared;
    assert_eq!(
        shared("-share data --share /scratch -host a,b -n 2 ./a"),
        ["data", "/scratch"]
    );
    assert!(words("-share").is_err());
}

#[test]
fn hosts_are_mapped_as_other_launchers_say() {
    let counts = |line: &str| {
        counts(line)
            .into_iter()
            .map(|(name, count, _)| format!("{name} {count}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(counts("-f hosts -map-by ppr:1:node ./a"), ["a 1", "b 1"]);
    assert_eq!(counts("--map-by ppr:3:node:pe=2 -host a,b ./a"), ["a 3", "b 3"]);
    assert_eq!(counts("-n 3 --map-by node:PE=4 -host a:8,b:8 ./a"), ["a 2", "b 1"]);
    assert_eq!(counts("-n 1 --map-by node -host a:8,b:8 ./a"), ["a 1"]);
    assert_eq!(counts("--map-by ppr:4:node ./a"), ["home 4"]);
    assert_eq!(counts("-n 2 --map-by node:pe=2 ./a"), ["home 2"]);
    let bound = |line: &str| subjob(line).environment;
    let pairs = |all: &[(&str, &str)]| {
        let pair = |(name, value): &(&str, &str)| (format!("ISTHMUS_{name}"), (*value).to_owned());
        all.iter().map(pair).collect::<Vec<_>>()
    };
    assert_eq!(bound("-n 2 --map-by node:pe=2 ./a"), pairs(&[("BIND_EACH", "2")]));
    assert_eq!(
        bound("-n 2 --map-by socket:pe=2 ./a"),
        pairs(&[("MAP_BY", "socket"), ("BIND_EACH", "2")])
    );
    assert_eq!(
        bound("-n 2 --map-by slot:pe=2 --bind-to none ./a"),
        pairs(&[("BIND_TO", "none")])
    );
    assert_eq!(bound("-n 2 --map-by ppr:2:node ./a"), []);
    assert_eq!(counts("--map-by ppr:2:socket ./a"), ["home 4"]);
    assert_eq!(counts("-npersocket 1 -host me ./a"), ["home 2"]);
    assert_eq!(counts("-n 3 --map-by ppr:2:socket -host a:2,b ./a"), ["a 2", "b 1"]);
    assert!(words("--map-by ppr:2:socket -host a,b ./a").is_err());
    assert_eq!(counts("-n 4 -bynode -host a:4,b:4 ./a"), ["a 2", "b 2"]);
    assert_eq!(
        bound("-n 2 -bysocket -bind-to-core --cpus-per-rank 2 ./a"),
        pairs(&[("BIND_TO", "core"), ("MAP_BY", "socket"), ("BIND_EACH", "2")])
    );
}

#[test]
fn hosts_are_filled_in_order_and_again() {
    let named =
        |list: &[(&str, u32, u32)]| -> Vec<_> { list.iter().map(|(n, c, a)| ((*n).to_owned(), *c, *a)).collect() };
    assert_eq!(counts("-n 3 -f hosts ./a"), named(&[("a", 2, 0), ("b", 1, 0)]));
    assert_eq!(counts("-n 7 -f hosts ./a"), named(&[("a", 4, 0), ("b", 3, 0)]));
    assert_eq!(counts("-f hosts ./a"), named(&[("a", 2, 0), ("b", 2, 0)]));
    assert_eq!(counts("-host a,b ./a"), named(&[("a", 1, 0), ("b", 1, 0)]));
    assert_eq!(counts("-host a,b -ppn 3 ./a"), named(&[("a", 3, 0), ("b", 3, 0)]));
    assert_eq!(
        counts("-separate -f hosts -n 3 ./a : -n 1 ./b"),
        named(&[("a", 2, 0), ("b", 1, 0), ("b#2", 1, 1)])
    );
    assert_eq!(
        counts("-n 1 ./a : -separate -n 2 ./b"),
        named(&[("home", 1, 0), ("home#2", 2, 1)])
    );
}

#[test]
fn programs_on_one_host_are_one_subjob() {
    let sections = |line: &str| {
        let Ok(Request::Run { described, .. }) = words(line) else {
            panic!("{line} was refused")
        };
        let subjobs = described.job.subjobs().iter().map(|s| {
            let sections = s.sections().map(|(section, count)| {
                let program = section.program.any.as_deref().unwrap_or_default();
                format!("{}:{program}:{count}", section.appnum)
            });
            format!("{} {}", s.site, sections.collect::<Vec<_>>().join(" "))
        });
        subjobs.collect::<Vec<_>>().join(", ")
    };
    for (line, expected) in [
        ("-n 1 ./a : -n 2 ./b : -n 3 ./a", "home 0:./a:1 1:./b:2 2:./a:3"),
        (
            "-host a -n 2 x : -host a -n 2 y : -host b -n 2 z",
            "a 0:x:2 1:y:2, b 2:z:2",
        ),
        (
            "-host a -n 2 x : -host b -n 2 y : -host a -n 2 z",
            "a 0:x:2, b 1:y:2, a#2 2:z:2",
        ),
        ("-f hosts -n 3 ./a : -n 1 ./b", "a 0:./a:2, b 0:./a:1 1:./b:1"),
        ("-n 1 -x ISTHMUS_STATS=1 ./a : -n 2 ./b", "home 0:./a:1, home#2 1:./b:2"),
        ("-n 1 -x A=1 ./a : -n 2 -wdir /tmp ./b", "home 0:./a:1 1:./b:2"),
    ] {
        assert_eq!(sections(line), expected, "{line}");
    }
}

#[test]
fn words_of_other_launchers() {
    let one = |name: &str, count: u32| vec![(name.to_owned(), count, 0)];
    for line in [
        "-np 4",
        "--np 4",
        "--np=4",
        "-ppn 4",
        "-N 4",
        "-npernode 4",
        "-n 4 -ppn 4",
        "-n 4 -ppn 8",
        "-c 4",
        "-n4",
        "-np4",
        "-np=4",
        "-n=4",
    ] {
        assert_eq!(counts(&format!("{line} ./a")), one("home", 4), "{line}");
    }
    assert!(
        words("-n 5 -ppn 2 ./a")
            .unwrap_err()
            .to_string()
            .contains("need 3 hosts")
    );
    assert_eq!(counts("--host a -n 2 ./a"), one("a", 2));
    assert_eq!(counts("-host me:2,127.0.0.1 ./a"), one("home", 3));
    let both = vec![("home".to_owned(), 3, 0), ("a".to_owned(), 1, 0)];
    assert_eq!(counts("-f mine ./a"), both);
    assert_eq!(counts("-configfile config"), one("home", 3));
    assert_eq!(counts("--app config"), one("home", 3));
    assert_eq!(
        counts("-pernode -host a:4,b ./a"),
        [("a".to_owned(), 4, 0), ("b".to_owned(), 1, 0)]
    );
    assert_eq!(
        subjob("-genv A=B -env C=D=E ./a x").environment,
        [("A".to_owned(), "B".to_owned()), ("C".to_owned(), "D=E".to_owned())]
    );
    let notes = |line: &str| match words(line) {
        Ok(Request::Run { described, .. }) => described
            .notes
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n"),
        other => panic!("{line}: {other:?}"),
    };
    for (line, part) in [
        ("--mca btl tcp -n 2 ./a", "--mca btl tcp has no effect"),
        ("-v ./a", "-v has no effect"),
        ("-soft 1:4 ./a", "-soft 1:4 has no effect"),
        ("-arch x -n 1 ./a", "-arch x has no effect"),
        ("-path /b ./a", "-path /b has no effect"),
        ("-launcher ssh ./a", "-launcher ssh has no effect"),
        ("-tune -n 2 ./a", "-tune has no effect"),
        ("-n 2 -tune file ./a", "-tune file has no effect"),
        ("-tune=file ./a", "-tune file has no effect"),
        ("-info -n 2 ./a", "-info has no effect"),
        ("-envnone ./a", "env -i PROGRAM"),
        ("-host me@[fd00::2]:22 ./a", "ssh://me@[fd00::2]:22"),
    ] {
        assert!(notes(line).contains(part), "{line}: {}", notes(line));
    }
    assert_eq!(notes("-initial-errhandler MPI_ERRORS_RETURN ./a"), "");
    assert!(words("-initial-errhandler no ./a").is_err());
    assert_eq!(notes("-ordered-output -quiet -genvall -host a:22,fd00::2 ./a"), "");
    for (line, part) in [
        ("--mpi=pmix ./a", "without a plugin"),
        ("--kill-on-bad-exit=1 ./a", "first process that fails"),
        ("--with-ft ulfm ./a", "--on-loss go-on"),
        ("--do-not-launch ./a", "--dry-run"),
    ] {
        let hint = words(line).unwrap_err().iter().next().unwrap().hint.clone();
        assert!(hint.unwrap_or_default().contains(part), "{line}");
    }
    assert!(
        words("-rankfile f ./a")
            .unwrap_err()
            .to_string()
            .contains("is not read")
    );
    assert!(
        words("-host a:2:3 ./a")
            .unwrap_err()
            .to_string()
            .contains("'a:2' has two numbers")
    );
    let Ok(Request::Run { launcher, .. }) = words("--timeout 60 --stdin all -outfile-pattern o.%r ./a") else {
        panic!("refused")
    };
    assert_eq!(launcher.limit.as_deref(), Some("60s"));
    assert_eq!(launcher.stdin.as_deref(), Some("all"));
    assert_eq!(launcher.outfile_pattern.as_deref(), Some("o.%r"));
}

#[test]
fn a_lan_is_named_by_the_user_only() {
    let Ok(Request::Run { described, label, .. }) = words("-l -lan rack -host a,b ./a") else {
        panic!()
    };
    assert!(label && !described.job.spans_wide_area());
    let Ok(Request::Run { described, .. }) = words("-host a,b ./a") else {
        panic!()
    };
    assert!(described.job.spans_wide_area());
}

#[test]
fn mistakes_are_named() {
    for (line, part) in [
        ("", "no program"),
        ("-n 4", "no program"),
        ("-n", "needs a number"),
        ("-n x ./a", "'x' is not a number"),
        ("-n 0 ./a", "-n 0"),
        ("-n 100000 ./a", "65536"),
        ("-hostz a ./a", "did you mean '-host'"),
        ("-f none ./a", "cannot read host file 'none'"),
        ("-x UNSET ./a", "'UNSET' is not set"),
        ("-n 2 ./a :", "no program"),
        ("-host -oX ./a", "not an ssh destination"),
    ] {
        let error = words(line).unwrap_err().to_string();
        assert!(error.contains(part), "{line}: {error}");
    }
    assert_eq!(words("--help"), Ok(Request::Help));
    assert_eq!(words("-version"), Ok(Request::Version));
}

#[test]
fn an_allocation_is_used() {
    for (line, expected) in [
        ("./a", "home 4, n2 4"),
        ("-n 6 ./a", "home 4, n2 2"),
        ("-ppn 2 ./a -n 9", "home 2, n2 2"),
        ("-N 1 -n 2 ./a", "home 1, n2 1"),
        ("-n 1 ./a : -n 5 ./b", "home 4, n2 2"),
        ("-separate -n 1 ./a : -n 5 ./b", "home 1, home#2 3, n2 2"),
        ("-host b ./a", "b 1"),
    ] {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let Ok(Request::Run { described, .. }) = parse(&words, &mut Files(true)) else {
            panic!("{line} was refused")
        };
        let subjobs = described.job.subjobs().iter();
        let dealt: Vec<String> = subjobs.map(|s| format!("{} {}", s.site, s.count)).collect();
        assert_eq!(dealt.join(", "), expected, "{line}");
    }
}
