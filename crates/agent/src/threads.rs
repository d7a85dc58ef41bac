// SPDX-License-Identifier: Apache-2.0
//! How many threads a runtime of OpenMP starts in each process.
//!
//! One that is told nothing starts a thread for each processor that its process may use. Where several processes share
//! a machine and none is bound, each of them starts as many threads as there are processors, and threads that spin at a
//! barrier keep the others from it. So each process is told its share, as `OMP_NUM_THREADS`, which libraries that
//! compute with threads of their own (OpenBLAS, MKL) follow too. Whatever the user, the site or its scheduler has said
//! stays.

use crate::template::variable;
use isthmus_stage::elf;
use isthmus_wire::grid::Start;
use std::path::Path;

/// The variable that all runtimes of OpenMP read (OpenMP 5.2 section 21.1).
pub(crate) const VARIABLE: &str = "OMP_NUM_THREADS";

/// Threads for each process; `None`: nothing is to be said. `bound`: processes are bound, and runtimes look at that.
pub(crate) fn share(start: &Start, bound: bool) -> Option<usize> {
    if bound || start.count < 2 || variable(start, VARIABLE).is_some() {
        return None;
    }
    let processors = std::thread::available_parallelism().ok()?.get();
    Some(divide(processors, start.count as usize))
}

fn divide(processors: usize, processes: usize) -> usize {
    (processors / processes.max(1)).max(1)
}

/// What people are told of it, if the program is one of OpenMP.
pub(crate) fn note(program: &Path, processes: u32, threads: usize) -> Option<String> {
    // What cannot be read says nothing about itself.
    let libraries = elf::closure(program, &[]).ok()?;
    let is_runtime = |name: &str| {
        ["libgomp.so", "libomp.so", "libiomp5.so"]
            .iter()
            .any(|known| name.starts_with(known))
    };
    libraries.iter().any(|(name, _)| is_runtime(name)).then(|| {
        let each = match threads {
            1 => "one thread".to_owned(),
            threads => format!("{threads} threads"),
        };
        format!(
            "isthmus: {processes} processes share the processors of a node, so each starts {each} of OpenMP; set {VARIABLE} \
             (-x {VARIABLE}=N) or --bind-to to change that\n"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_divided_and_everybody_has_one() {
        assert_eq!((divide(8, 2), divide(7, 2), divide(2, 5)), (4, 3, 1));
    }

    #[test]
    fn a_program_without_threads_is_told_nothing() {
        assert_eq!(note(Path::new("/bin/sh"), 2, 1), None);
        assert_eq!(note(Path::new("/nonexistent"), 2, 1), None);
    }
}
