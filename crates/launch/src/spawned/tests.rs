// SPDX-License-Identifier: Apache-2.0
use super::*;
use isthmus_job::sites;

fn part(processes: u32, keys: &[(&str, &str)]) -> SpawnProgram {
    SpawnProgram {
        program: "./x".into(),
        arguments: vec!["a".into()],
        processes,
        keys: keys
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
    }
}

fn spawned(parts: &[SpawnProgram]) -> Result<(Vec<Subjob>, Vec<u32>), String> {
    spawned_in(Path::new("/"), parts)
}

fn spawned_in(directory: &Path, parts: &[SpawnProgram]) -> Result<(Vec<Subjob>, Vec<u32>), String> {
    let specs = ["home:2", "lab=me@l1.example.org:3"].map(|s| sites::SiteSpec::parse(s).unwrap());
    let template = sites::template(Program::one("./parent"), vec!["old".to_owned()]);
    let job = sites::job_of_sites(&specs, None, &template).unwrap();
    let places: Vec<SpawnHost<'_>> = job
        .subjobs()
        .iter()
        .zip(["desk", "l1"])
        .map(|(subjob, host)| SpawnHost { subjob, host })
        .collect();
    let spawn = Spawn {
        places: &places,
        own: 1,
        number: 4,
        directory,
    };
    let (mut subjobs, counts) = spawn.subjobs(parts).map_err(|refusal| refusal.why)?;
    awaited_at(&mut subjobs, "p");
    Ok((subjobs, counts))
}

#[test]
fn parts_run_where_their_keys_say_and_else_with_who_asks() {
    let sites = |keys: &[(&str, &str)]| spawned(&[part(1, keys)]).map(|(subjobs, _)| subjobs[0].site.clone());
    for (keys, site) in [
        (&[][..], "lab+5"),
        (&[("host", "localhost")], "home+5"),
        (&[("host", "desk")], "home+5"),
        (&[("host", "l1.example.org")], "lab+5"),
        (&[("isthmus_site", "home")], "home+5"),
        (&[("isthmus_site", "lab"), ("host", "l1")], "lab+5"),
        (&[("unknown", "x"), ("host", "")], "lab+5"),
    ] {
        assert_eq!(sites(keys).as_deref(), Ok(site), "{keys:?}");
    }
    let elsewhere = "is not a machine of this job, whose sites are 'home', 'lab'";
    for (keys, why) in [
        (&[("host", "mars")][..], format!("'mars' {elsewhere}")),
        (
            &[("isthmus_site", "mars"), ("host", "home")],
            format!("'mars' {elsewhere}"),
        ),
        (
            &[("isthmus_site", "home"), ("host", "l1")],
            "'l1' (host) is not a machine of site 'home' (isthmus_site)".to_owned(),
        ),
    ] {
        let refusal = sites(keys).unwrap_err();
        assert!(refusal.contains(&why), "{keys:?}: {refusal}");
    }
    let other = sites(&[("isthmus_scheduler", "slurm")]).unwrap_err();
    assert!(other.contains("no scheduler that the job knows"), "{other}");
}

#[test]
fn further_sites_are_those_that_the_user_names_with_their_schedulers() {
    let further = further(
        "lab gpu=me@g1 big:4,scheduler=slurm,queue=q,nodes=4",
        &Catalogue::default(),
    )
    .unwrap();
    let named: Vec<_> = further
        .iter()
        .map(|s| (s.site.as_str(), s.contact.to_string()))
        .collect();
    let wanted = [("lab", "lab"), ("gpu", "me@g1"), ("big", "big")].map(|(s, c)| (s, c.to_owned()));
    assert_eq!(named, wanted);
    let places: Vec<SpawnHost<'_>> = further.iter().map(|subjob| SpawnHost { subjob, host: "" }).collect();
    let spawn = Spawn {
        places: &places,
        own: 0,
        number: 0,
        directory: Path::new("/"),
    };
    let one = |keys: &[(&str, &str)]| {
        let (subjobs, _) = spawn.subjobs(&[part(2, keys)]).map_err(|refusal| refusal.why)?;
        let nodes = subjobs[0].allocation.as_ref().map(|a| (a.queue.clone(), a.nodes));
        Ok::<_, String>((subjobs[0].site.clone(), nodes, subjobs[0].forks))
    };
    assert_eq!(one(&[("host", "g1")]), Ok(("gpu+1".into(), None, true)));
    let at = ("isthmus_site", "big");
    assert_eq!(one(&[at]), Ok(("big+1".into(), Some(("q".into(), 2)), false)));
    assert_eq!(
        one(&[at, ("isthmus_scheduler", "fork")]),
        Ok(("big+1".into(), None, true))
    );
    assert!(
        one(&[at, ("isthmus_scheduler", "lsf")])
            .unwrap_err()
            .contains("has 'slurm'")
    );
    assert!(super::further("a b:x", &Catalogue::default()).is_err());
}

#[test]
fn parts_have_their_own_words_variables_and_numbers() {
    let keys = [("wdir", "/tmp"), ("env", "A=1\nB=x=y\n"), ("path", "/opt/bin")];
    let (subjobs, counts) = spawned(&[part(2, &keys), part(0, &[]), part(3, &[("arch", "riscv64")])]).unwrap();
    assert_eq!(counts, [2, 0, 3]);
    let [subjob] = &subjobs[..] else { panic!("{subjobs:?}") };
    assert_eq!((subjob.site.as_str(), subjob.count), ("lab+5", 5));
    assert_eq!(subjob.numbers(), [(0, 0), (2, 2)]);
    let [first, second] = &subjob.sections[..] else {
        panic!("{subjob:?}")
    };
    let of = |name: &str| {
        let all = subjob.environment.iter().chain(&first.environment);
        all.rev().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    };
    assert_eq!((of("A"), of("B"), of(PORT)), (Some("1"), Some("x=y"), Some("p")));
    assert!(of("PATH").unwrap().starts_with("/opt/bin:"));
    assert_eq!(
        (first.directory.as_deref(), &first.arguments[..]),
        (Some("/tmp"), &["a".to_owned()][..])
    );
    assert_eq!(second.program.for_architecture("x86_64"), None);
    assert_eq!(second.program.for_architecture("riscv64"), Some("./x"));
    assert!(spawned(&[part(0, &[])]).unwrap_err().contains("no process"));
    for line in ["A=1\nB", "=x", " =x"] {
        let why = spawned(&[part(1, &[("env", line)])]).unwrap_err();
        assert!(why.contains("NAME=VALUE"), "{why}");
    }
}

#[test]
fn what_the_launcher_does_not_have_is_the_sites_own() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("x"), "").unwrap();
    let elsewhere = SpawnProgram {
        program: "./y".into(),
        ..part(2, &[])
    };
    let (subjobs, _) = spawned_in(directory.path(), &[part(1, &[]), elsewhere]).unwrap();
    let staged: Vec<_> = subjobs.iter().map(|subjob| (subjob.count, subjob.stage)).collect();
    assert_eq!(staged, [(1, true), (2, false)]);
}

#[test]
fn the_directories_of_the_key_path_come_before_those_of_the_launcher() {
    let directory = tempfile::tempdir().unwrap();
    let of = |program: &str, path: &str| {
        let keys: &[(&str, &str)] = if path.is_empty() { &[] } else { &[("path", path)] };
        let part = SpawnProgram {
            program: program.into(),
            ..part(1, keys)
        };
        let (subjobs, _) = spawned_in(directory.path(), &[part]).unwrap();
        let program = subjobs[0].sections[0].program.for_architecture("x86_64").unwrap();
        (program.to_owned(), subjobs[0].stage)
    };
    // Every launcher has this one in PATH.
    assert_eq!(of("sh", ""), ("sh".to_owned(), true));
    assert_eq!(of("sh", "/opt/none:mine"), ("sh".to_owned(), false));
    let mine = directory.path().join("mine/sh");
    std::fs::create_dir(mine.parent().unwrap()).unwrap();
    std::fs::write(&mine, "").unwrap();
    std::fs::set_permissions(&mine, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(of("sh", "/opt/none:mine"), (mine.to_str().unwrap().to_owned(), true));
    assert_eq!(of("/bin/sh", "mine"), ("/bin/sh".to_owned(), true));
}

#[test]
fn the_first_error_handler_is_said_by_a_key_or_is_the_standards() {
    let begins = |keys: &[(&str, &str)]| {
        let (subjobs, _) = spawned(&[part(1, keys)])?;
        let handler = subjobs[0].environment.iter().rev().nth(1).unwrap();
        Ok::<_, String>(handler.1.clone())
    };
    assert_eq!(begins(&[]), Ok("mpi_errors_are_fatal".to_owned()));
    let key = "mpi_initial_errhandler";
    assert_eq!(
        begins(&[(key, "MPI_ERRORS_RETURN")]),
        Ok("mpi_errors_return".to_owned())
    );
    assert!(begins(&[(key, "x")]).unwrap_err().contains("mpi_initial_errhandler: "));
}

#[test]
fn what_a_loss_means_is_said_by_a_key_or_holds_as_at_the_place() {
    let goes_on = |keys: &[(&str, &str)]| {
        let (subjobs, _) = spawned(&[part(1, keys)])?;
        Ok::<_, String>(Terms::of(&subjobs[0]).unwrap().goes_on())
    };
    assert_eq!(goes_on(&[]), Ok(false));
    assert_eq!(goes_on(&[("isthmus_on_loss", "go-on")]), Ok(true));
    assert!(
        goes_on(&[("isthmus_on_loss", "x")])
            .unwrap_err()
            .contains("isthmus_on_loss: ")
    );
}

#[test]
fn soft_allows_some_numbers_of_processes() {
    let count = |processes, soft: &str| spawned(&[part(processes, &[("soft", soft)])]).map(|(_, counts)| counts[0]);
    for (processes, soft, expected) in [
        (10, "1:10", 10),
        (10, "2:9:3", 8),
        (10, "1,3,5", 5),
        (4, "1:100:5, 2", 2),
        (10, "10:2:-4", 10),
        (9, "10:2:-4", 6),
        (5000, "0:5000:1000", 1000),
        (7, "3", 3),
    ] {
        assert_eq!(count(processes, soft), Ok(expected), "{soft} of {processes}");
    }
    for wrong in ["x", "1:2:0", "1:2:3:4", ""] {
        let refused = count(3, wrong);
        assert!(wrong.is_empty() == refused.is_ok(), "{wrong}");
    }
    assert!(count(3, "5:9").unwrap_err().contains("allows no number"));
    assert!(spawned(&[part(5000, &[])]).unwrap_err().contains("more than the 1024"));
}
