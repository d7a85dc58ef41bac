// SPDX-License-Identifier: Apache-2.0
//! `isthmus trace`: traces of the parts of a world as one.

use crate::inherited;
use crate::overwritten::{self, Kind};
use clap::Args;
use isthmus_job::JobError;
use isthmus_launch::traces::{Clock, Fault, Merged, Part, merge};
use isthmus_wire::word::counted;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Merge the traces of parts that were started by hand
///
/// Each part records its own trace with isthmus run --world NAME=2of3 --trace FILE. The result has one time line.
#[derive(Args, Debug)]
pub(crate) struct Trace {
    /// The traces of the parts
    #[arg(required = true, value_name = "FILE")]
    parts: Vec<PathBuf>,
    /// Write the trace of all of them to FILE; without it, or with -, to standard output
    #[arg(long, short, value_name = "FILE", default_value = "-", hide_default_value = true)]
    output: PathBuf,
}

/// `isthmus trace`.
pub(crate) fn trace(arguments: &Trace) -> ExitCode {
    match all(arguments) {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(Merged { clocks, forgotten })) => {
            let first = clocks.first().map_or("", |clock| &clock.name).to_owned();
            for clock in clocks.iter().skip(1) {
                crate::complain(&format!("isthmus: {}", said(clock, &first)));
            }
            if forgotten > 0 {
                let what = counted(forgotten, "message");
                crate::complain(&format!(
                    "isthmus: no arrows for {what} between parts: there are too many to remember them all"
                ));
            }
            ExitCode::SUCCESS
        }
        Err(error) => crate::diagnostic::refuse(&error),
    }
}

fn said(clock: &Clock, first: &str) -> String {
    let apart = |ahead: i64, other: &str| {
        let way = if ahead < 0 { "behind" } else { "ahead of" };
        format!("{:.3} ms {way} that of '{other}'", (ahead as f64 / 1e6).abs())
    };
    let (name, compared) = (&clock.name, &clock.compared);
    if compared.with != *name {
        return format!(
            "the clock of '{name}' was {}, right to {:.3} ms",
            apart(compared.ahead, &compared.with),
            compared.right_to as f64 / 1e6
        );
    }
    let taken = match clock.ahead {
        0 => "as it was".to_owned(),
        ahead => format!("as {}, since nothing comes before it is sent", apart(ahead, first)),
    };
    format!(
        "no messages went both ways between '{first}' and '{name}', nor by way of other parts: the clock of '{name}' is \
         taken {taken}"
    )
}

/// Nothing: whoever reads what is written has read enough.
fn all(arguments: &Trace) -> Result<Option<Merged>, JobError> {
    let open = |path: &PathBuf| -> Result<Part<BufReader<File>>, JobError> {
        let name = path.display().to_string();
        let cannot = |error: io::Error| JobError::new(format!("cannot read the trace '{name}': {error}"));
        let file = File::open(path).map_err(cannot)?;
        Ok(Part {
            file: BufReader::new(file),
            name: name.clone(),
        })
    };
    let mut parts = arguments.parts.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let hint =
        "record each part with isthmus run --world NAME=PARTofPARTS --trace FILE, and name the files of all parts here";
    let to_output = arguments.output == Path::new("-");
    let ended = |merged: Result<Merged, Fault>| match merged {
        Ok(merged) => Ok(Some(merged)),
        Err(Fault::Part(why)) => Err(JobError::new(why).hint(hint)),
        Err(Fault::Output(error)) if to_output && error.kind() == io::ErrorKind::BrokenPipe => Ok(None),
        Err(Fault::Output(error)) => {
            let place = match to_output {
                true => "to standard output".to_owned(),
                false => format!("'{}'", arguments.output.display()),
            };
            Err(JobError::new(format!("cannot write {place}: {error}")))
        }
    };
    if to_output {
        let open = inherited::output().map_err(Fault::Output);
        let mut out = BufWriter::new(io::stdout().lock());
        return ended(open.and_then(|()| merge(&mut parts, &mut out)));
    }
    for (path, part) in arguments.parts.iter().zip(&parts) {
        if is_same(part.file.get_ref(), &arguments.output) {
            let why = format!(
                "--output: '{}' is one of the traces, and would be overwritten",
                path.display()
            );
            return Err(JobError::new(why).hint("name another file"));
        }
    }
    overwritten::check("--output", &arguments.output, Kind::Json)?;
    let mut out = Later {
        path: &arguments.output,
        file: None,
    };
    ended(merge(&mut parts, &mut out))
}

/// Whether a file has this name.
fn is_same(file: &File, name: &Path) -> bool {
    let known = file.metadata().ok().zip(std::fs::metadata(name).ok());
    known.is_some_and(|(one, other)| (one.dev(), one.ino()) == (other.dev(), other.ino()))
}

/// A file that is made when there is something to write: what is wrong with a part is found before.
struct Later<'a> {
    path: &'a Path,
    file: Option<BufWriter<File>>,
}

impl Write for Later<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let file = match self.file.take() {
            Some(file) => file,
            None => BufWriter::new(File::create(self.path)?),
        };
        self.file.insert(file).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_launch::traces::Compared;

    #[test]
    fn what_is_known_of_a_clock_is_said_and_no_more() {
        let clock = |ahead, with: &str, apart, right_to| Clock {
            name: "b".into(),
            ahead,
            compared: Compared {
                with: with.into(),
                ahead: apart,
                right_to,
            },
        };
        let known = said(&clock(-2_000_000, "a", -2_000_000, 3_000), "a");
        assert_eq!(
            known,
            "the clock of 'b' was 2.000 ms behind that of 'a', right to 0.003 ms"
        );
        let among_others = said(&clock(0, "c", 1_500_000, 3_000), "a");
        assert_eq!(
            among_others,
            "the clock of 'b' was 1.500 ms ahead of that of 'c', right to 0.003 ms"
        );
        let none =
            "no messages went both ways between 'a' and 'b', nor by way of other parts: the clock of 'b' is taken";
        assert_eq!(said(&clock(0, "b", 0, 0), "a"), format!("{none} as it was"));
        assert_eq!(
            said(&clock(7_000, "b", 0, 0), "a"),
            format!("{none} as 0.007 ms ahead of that of 'a', since nothing comes before it is sent")
        );
    }
}
