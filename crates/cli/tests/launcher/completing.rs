// SPDX-License-Identifier: Apache-2.0
//! Completion as shells drive it: bash and fish with the scripts that `isthmus completions` prints.

use crate::bench::{Bench, finish};
use std::path::Path;
use std::process::{Command, Stdio};

/// Prints what bash would offer for each of its arguments, which are lines.
const DRIVER: &str = r#"
eval "$(isthmus completions bash)"
for line; do
    COMP_LINE=$line COMP_POINT=${#line} COMPREPLY=()
    _isthmus
    printf '%s' "$line:"
    printf ' %s' "${COMPREPLY[@]}"
    echo
done
"#;

/// The same of fish.
const FISH: &str = r#"
isthmus completions fish | source
for line in $argv
    echo "$line:" (complete -C "$line" | string replace -r "\t.*" "")
end
"#;

fn offered(bench: &Bench, shell: &[&str], lines: &[&str]) -> Vec<String> {
    let binaries = Path::new(env!("CARGO_BIN_EXE_isthmus")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(shell[0]);
    command.args(&shell[1..]).args(lines);
    command
        .current_dir(bench.root.join("work"))
        .env("PATH", path)
        .env("HOME", bench.root.join("home"))
        .env("XDG_CONFIG_HOME", bench.root.join("config"))
        .env("XDG_CACHE_HOME", bench.root.join("cache"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let done = finish(command.spawn().unwrap());
    assert_eq!((done.code(), done.errors.as_str()), (Some(0), ""), "{done:?}");
    let text = String::from_utf8(done.output).unwrap();
    let behind = |(line, asked): (&str, &&str)| line.strip_prefix(&format!("{asked}:")).unwrap().trim().to_owned();
    text.lines().zip(lines).map(behind).collect()
}

#[test]
fn shells_offer_what_there_is() {
    let bench = Bench::new("completing");
    for directory in ["home/.ssh", "config/isthmus"] {
        std::fs::create_dir_all(bench.root.join(directory)).unwrap();
    }
    bench.write("home/.ssh/config", "Host lab lake *.example.org\n  User me\n", 0o600);
    bench.write("config/isthmus/sites.toml", "[site.lagoon]\ncontact = \"lab\"\n", 0o600);
    bench.write("work/job.toml", "", 0o644);
    bench.write(
        "work/wait",
        "#!/bin/sh\nwhile ! test -e go; do sleep 0.05; done\n",
        0o755,
    );
    let mut started = bench.command("run --detach --name tides -n 1 ./wait");
    assert_eq!(
        finish(started.env("PATH", std::env::var("PATH").unwrap()).spawn().unwrap()).code(),
        Some(0)
    );
    let cases = [
        ("isthmus atta", "attach"),
        ("isthmus attach t", "tides"),
        ("isthmus kill ", "tides"),
        ("isthmus run --site la", "lab lagoon lake"),
        ("isthmus run --site=lag", "lagoon"),
        ("isthmus run --progress=li", "lines"),
        ("isthmus ps --site h", "home"),
        ("isthmus explain allr", "allreduce"),
        ("isthmus run jo", "job.toml"),
        ("isthmus run --job jo", "job.toml"),
        ("mpiexec -host la", "lab lagoon lake"),
        ("mpirun -host home,lak", "home,lake"),
        ("mpiexec -n 2 ./wa", "./wait"),
        ("mpiexec -report", "-report-bindings"),
    ];
    let lines = cases.map(|(line, _)| line);
    let by_bash = offered(&bench, &["bash", "--norc", "-c", DRIVER, "bash"], &lines);
    for ((line, wanted), found) in cases.iter().zip(&by_bash) {
        assert_eq!(found, wanted, "bash: {line}");
    }
    match Command::new("fish").arg("--version").output() {
        Err(_) => eprintln!("skipped: no fish here"),
        Ok(_) => {
            let by_fish = offered(&bench, &["fish", "--no-config", "-c", FISH], &lines);
            for ((line, wanted), found) in cases.iter().zip(&by_fish) {
                // It completes the whole word.
                let whole = line
                    .rsplit_once(' ')
                    .and_then(|(_, word)| Some((word.split_once('=')?.0, wanted)));
                let wanted = whole.map_or_else(|| (*wanted).to_owned(), |(option, value)| format!("{option}={value}"));
                assert_eq!(*found, wanted, "fish: {line}");
            }
        }
    }
    std::fs::write(bench.root.join("work/go"), "").unwrap();
    assert_eq!(finish(bench.command("attach tides").spawn().unwrap()).code(), Some(0));
}
