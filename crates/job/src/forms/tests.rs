// SPDX-License-Identifier: Apache-2.0

use super::described::FORMS;
use super::*;
use crate::forms::sites::template;
use crate::model::Program;
use crate::model::Subjob;
use crate::naming::JobName;

fn read(form: Form, text: &str, total: Option<u32>) -> Result<Described, JobErrors> {
    let program = template(Program::one("./a"), vec!["7".to_owned()]);
    form.read(&Input {
        program: Some(&program),
        total,
        ..Input::of(text, "machines")
    })
}

/// Site, contact, processes and local network of every subjob.
fn sites(form: Form, text: &str, total: Option<u32>) -> Vec<String> {
    let job = read(form, text, total).unwrap_or_else(|e| panic!("{e}")).job;
    let show = |s: &Subjob| format!("{} {} {} {}", s.site, s.contact, s.count, s.lan);
    job.subjobs().iter().map(show).collect()
}

const PACX: &str = "\
# one machine a line
host1 tcp 100
host2 tcp 50 (ssh -l me host2.example mpirun -np 52 {exe})
host3 tcp 20 (/usr/bin/rsh me@host3 mpirun -np 20 {exe})
host4 tcp 4 #
host5 tcp 3 (mpirun -np 5 {exe})
";

#[test]
fn pacx_host_files() {
    let job = read(Form::Pacx, PACX, None).unwrap();
    assert_eq!(
        sites(Form::Pacx, PACX, None),
        [
            "host1 home 100 host1",
            "host2 host2.example 50 host2",
            "host3 me@host3 20 host3",
            "host4 host4 4 host4",
            "host5 home 3 host5"
        ]
    );
    let notes: Vec<String> = job.notes.iter().map(ToString::to_string).collect();
    assert_eq!(notes.len(), 2);
    assert!(
        notes[0].starts_with("machines:4:1: the command starts 20 processes, the application has 20 and PACX-MPI 2")
    );
    assert!(notes[1].contains("'host4' is started with ssh, not by hand"));
    assert_eq!(job.job.subjobs()[0].sections[0].arguments, ["7"]);
}

#[test]
fn the_first_machine_of_a_pacx_host_file_is_this_one_and_that_is_told() {
    let job = |text: &str| read(Form::Pacx, text, None).unwrap().job;
    let note = |text: &str, own: &str| Form::Pacx.note_of_home(&job(text), &mut |host| host == own);
    let told = note("host1 tcp 4\nhost2 tcp 2 #\n", "me").unwrap();
    assert!(told.problem.starts_with("'host1' is the first machine"), "{told}");
    assert_eq!(told.hint.as_deref(), Some("if ssh is to reach it, write host1 tcp 4 #"));
    for (text, own) in [("me tcp 4\n", "me"), ("home tcp 4\n", "me"), ("host1 tcp 4 #\n", "me")] {
        assert!(note(text, own).is_none(), "{text}");
    }
}

#[test]
fn pacx_host_files_with_all_their_mistakes() {
    let text = "host1 atm 4\nhost2 tcp many\nhost3 tcp 2 ssh host3\n-o tcp 2 #\nhost5 tcp 0\n";
    let errors = read(Form::Pacx, text, None).unwrap_err().to_string();
    for part in [
        "machines:1:1: 'atm' is not a known protocol",
        "machines:2:1: 'many' is not a number",
        "machines:3:1: the command that starts it is not in parentheses",
        "machines:4:1: '-o' is not an ssh destination",
        "machines:5:1: '0' is not a number",
    ] {
        assert!(errors.contains(part), "{part} is not in\n{errors}");
    }
    assert!(read(Form::Pacx, "", None).is_err());
    for (last, is_read) in [
        ("host9 tcp 1 #", true),
        ("host9 tcp 1 #\n", true),
        ("\nhost9 tcp 1 #", false),
    ] {
        let long = format!("{PACX}{}{last}", "\n".repeat(9_999 - PACX.lines().count()));
        match read(Form::Pacx, &long, None) {
            Ok(_) => assert!(is_read, "{last:?}"),
            Err(errors) => assert!(
                !is_read && errors.to_string().contains("more than 10000 lines"),
                "{errors}"
            ),
        }
    }
    assert!(
        read(Form::Pacx, PACX, Some(7))
            .unwrap_err()
            .to_string()
            .contains("for 177")
    );
}

#[test]
fn machines_files_are_walked_from_the_top() {
    let text = "\"m1.example/jobmanager-slurm\" 10\nm2.example 5 # small\n";
    let counts = |total| sites(Form::Machines, text, total);
    assert_eq!(counts(Some(8)), ["m1.example m1.example 8 m1.example"]);
    assert_eq!(
        counts(Some(12)),
        [
            "m1.example m1.example 10 m1.example",
            "m2.example m2.example 2 m2.example"
        ]
    );
    assert_eq!(
        counts(Some(17)),
        [
            "m1.example m1.example 10 m1.example",
            "m2.example m2.example 5 m2.example",
            "m1.example#2 m1.example 2 m1.example#2"
        ]
    );
    assert_eq!(counts(None).len(), 2);
    assert_eq!(sites(Form::Machines, "a -3\nb\n", None), ["a a 1 a", "b b 1 b"]);
    let errors = read(Form::Machines, "\"a 3\nb x\nc/y 1\n", None).unwrap_err();
    assert_eq!(errors.count(), 3, "{errors}");
    assert!(
        read(Form::Machines, "a 1", Some(5000))
            .unwrap_err()
            .to_string()
            .contains("1024")
    );
}

#[test]
fn what_mpirun_of_mpich_g2_wrote() {
    let text = "\"m1.example\" 10\n\"m2.example\" 5\n";
    let job = read(Form::Machines, text, Some(12)).unwrap().job;
    let mut subjobs = job.subjobs().to_vec();
    for subjob in &mut subjobs {
        subjob.stage = false;
        subjob.directory = Some("/home/me".to_owned());
    }
    let written = Form::Rsl.write(&Job::new(subjobs).unwrap());
    assert_eq!(written.lost, Vec::<String>::new());
    assert_eq!(
        written.text,
        "+\n\
         ( &(resourceManagerContact=\"m1.example\")\n   (count=10)\n   (label=\"subjob 0\")\n   \
         (environment=(GLOBUS_DUROC_SUBJOB_INDEX 0))\n   (arguments=7)\n   (directory=\"/home/me\")\n   \
         (executable=\"./a\")\n)\n\
         ( &(resourceManagerContact=\"m2.example\")\n   (count=2)\n   (label=\"subjob 10\")\n   \
         (environment=(GLOBUS_DUROC_SUBJOB_INDEX 1))\n   (arguments=7)\n   (directory=\"/home/me\")\n   \
         (executable=\"./a\")\n)\n"
    );
}

#[test]
fn jobs_of_slurm() {
    let het = "HOME=/x\nSLURM_HET_SIZE=2\nSLURM_CLUSTER_NAME=big\nSLURM_JOB_NODELIST_HET_GROUP_0=cpu[01-02]\n\
               SLURM_TASKS_PER_NODE_HET_GROUP_0=4(x2)\nSLURM_JOB_NODELIST_HET_GROUP_1=gpu1\nSLURMD_NODENAME=cpu01\n";
    let nodes = ["home home 4 big", "cpu02 cpu02 4 big", "gpu1 gpu1 1 big"];
    assert_eq!(sites(Form::Slurm, het, None), nodes);
    let plain = "SLURM_JOB_NODELIST=n[1-2]\nSLURM_TASKS_PER_NODE=3,1\n";
    assert_eq!(sites(Form::Slurm, plain, None), ["n1 n1 3 slurm", "n2 n2 1 slurm"]);
    assert_eq!(sites(Form::Slurm, plain, Some(2)), ["n1 n1 2 slurm"]);
    for (text, part) in [
        ("", "SLURM_JOB_NODELIST is not set"),
        ("SLURM_HET_SIZE=2\n", "SLURM_JOB_NODELIST_HET_GROUP_1 is not set"),
        ("SLURM_JOB_NODELIST=n[\n", "SLURM_JOB_NODELIST is 'n['"),
        (
            "SLURM_JOB_NODELIST=n1\nSLURM_TASKS_PER_NODE=x\n",
            "SLURM_TASKS_PER_NODE is 'x'",
        ),
        ("SLURM_HET_SIZE=x\n", "SLURM_HET_SIZE is 'x'"),
    ] {
        let errors = read(Form::Slurm, text, None).unwrap_err().to_string();
        assert!(errors.contains(part), "{text}: {errors}");
    }
}

#[test]
fn what_a_form_cannot_say_is_named() {
    let text = "+(&(resourceManagerContact=me@lab)(label=lab)(executable=/a)(queue=q)(environment=(GLOBUS_LAN_ID x)))\
                (&(resourceManagerContact=home)(executable=/b))";
    let job = rsl::job(text, "x", &[], None).unwrap().job;
    let lost = Form::Mpich.write(&job).lost.join("\n");
    for part in [
        "what to run",
        "that the subjobs differ",
        "site 'lab': its name ('me@lab' instead), its local network 'x' ('me@lab' instead), queue=q",
    ] {
        assert!(lost.contains(part), "{part} is not in\n{lost}");
    }
    assert!(Form::Toml.write(&job).lost.is_empty() && Form::Rsl.write(&job).lost.is_empty());
    let job = job.called(Some(JobName::parse("climate-7").unwrap()));
    assert_eq!(Form::Rsl.write(&job).lost, ["the name of the job"]);
    let written = Form::Toml.write(&job);
    assert!(written.lost.is_empty(), "{:?}", written.lost);
    assert_eq!(read(Form::Toml, &written.text, None).map(|d| d.job), Ok(job.clone()));
    let pins = "[level.wide]\nlatency = \"9 ms\"\n[[link]]\nbetween = [\"x\", \"home\"]\nrate = \"10 Mbit/s\"\n";
    let job = job.with_links(crate::links::parse(pins, "pins").unwrap());
    let written = Form::Toml.write(&job);
    assert!(written.lost.is_empty(), "{:?}", written.lost);
    assert_eq!(read(Form::Toml, &written.text, None).map(|d| d.job), Ok(job.clone()));
    assert!(Form::Rsl.write(&job).lost.contains(&"what is said of links".to_owned()));
    let mut subjobs = job.subjobs().to_vec();
    subjobs[0].files.shared = vec!["/data".to_owned(), "~/x".to_owned()];
    let job = Job::new(subjobs).unwrap();
    let written = Form::Toml.write(&job);
    assert!(written.lost.is_empty(), "{:?}", written.lost);
    assert_eq!(read(Form::Toml, &written.text, None).map(|d| d.job), Ok(job.clone()));
    for form in [
        Form::Rsl,
        Form::Mpich,
        Form::OpenMpi,
        Form::Slurm,
        Form::Pacx,
        Form::Machines,
    ] {
        let lost = form.write(&job).lost.join("\n");
        assert!(lost.contains("what it shares (/data, ~/x)"), "{}: {lost}", form.name());
    }
}

#[test]
fn forms_have_names() {
    for (name, form) in FORMS {
        assert_eq!(Form::parse(name), Ok(form));
        assert_eq!(form.name(), name);
    }
    assert!(
        Form::parse("machine")
            .unwrap_err()
            .to_string()
            .contains("did you mean 'machines'")
    );
    assert_eq!(Form::detect("a", "# x\nalpha:4\n"), Form::Mpich);
    assert_eq!(Form::detect("a", "program = \"x\"\n"), Form::Toml);
    assert_eq!(Form::detect("a.rsl", "executable = x"), Form::Rsl);
}
