// SPDX-License-Identifier: Apache-2.0
//! Requests as users write them. Beside every file in `rsl/good` stands what it says: its canonical form, the notes,
//! the job as a job file; beside every file in `rsl/bad` all that is wrong with it. `ISTHMUS_TEST_UPDATE=1` writes
//! these anew.
#![expect(clippy::unwrap_used, reason = "tests")]

use isthmus_job::forms::Form;
use isthmus_job::rsl;
use std::fs;
use std::path::{Path, PathBuf};

fn bindings() -> Vec<(String, String)> {
    let value = |name: &str| match name {
        "HOME" => Some("/home/me".to_owned()),
        "LOGNAME" => Some("me".to_owned()),
        _ => None,
    };
    rsl::bindings(value)
}

fn samples(kind: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rsl").join(kind);
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|p| p.extension().is_some_and(|e| e == "rsl")).collect();
    files.sort();
    files
}

/// Compares with what stands beside the sample.
fn expect(sample: &Path, got: &str) {
    let beside = sample.with_extension("txt");
    if std::env::var_os("ISTHMUS_TEST_UPDATE").is_some() {
        fs::write(&beside, got).unwrap();
    }
    let wanted = fs::read_to_string(&beside).unwrap_or_default();
    assert_eq!(got, wanted, "{}", sample.display());
}

#[test]
fn good_requests() {
    let samples = samples("good");
    assert!(samples.len() >= 10);
    for sample in samples {
        let name = sample.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&sample).unwrap();
        let request = rsl::evaluate(&text, name, &bindings()).unwrap_or_else(|e| panic!("{e}"));
        let described = rsl::job(&text, name, &bindings(), None).unwrap_or_else(|e| panic!("{e}"));
        let notes: String = described.notes.iter().map(|note| format!("{note}\n")).collect();
        let job = Form::Toml.write(&described.job);
        assert_eq!(job.lost, Vec::<String>::new());
        expect(
            &sample,
            &format!("{}---\n{notes}---\n{}", rsl::canonical(&request), job.text),
        );
    }
}

#[test]
fn bad_requests() {
    let samples = samples("bad");
    assert!(samples.len() >= 15);
    for sample in samples {
        let name = sample.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&sample).unwrap();
        let errors = rsl::job(&text, name, &bindings(), None).unwrap_err();
        assert!(errors.iter().all(|error| error.location.is_some()), "{errors}");
        expect(&sample, &format!("{errors}\n"));
    }
}

/// Which of them are refused before anything is evaluated.
#[test]
fn what_is_wrong_is_found_where_it_belongs() {
    let early = [
        "bare_dollar",
        "blanks_for_underscores",
        "empty_list",
        "endless_comment",
        "endless_string",
        "equals_in_word",
        "many",
        "missing_parenthesis",
        "no_comparison",
        "no_operator",
        "no_value",
        "nothing",
        "quote_forgotten_before",
    ];
    for sample in samples("bad") {
        let name = sample.file_stem().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&sample).unwrap();
        assert_eq!(rsl::parse(&text, name).is_err(), early.contains(&name), "{name}");
    }
}
