// SPDX-License-Identifier: Apache-2.0
//! Processes ask the coordinator.

use crate::bench::Bench;

#[test]
fn processes_of_all_sites_find_each_other_by_names() {
    let bench = Bench::new("askednames");
    let done = bench.run(&format!("run --site home:2 --site lab:2 {} names", Bench::fake()));
    assert_eq!(done.code(), Some(0), "{done:?}");
    let heard = done.lines().into_iter().filter(|line| line.ends_with("has heard all"));
    assert_eq!(heard.count(), 4, "{done:?}");
}

#[test]
fn a_process_that_asks_what_it_may_not_ends_the_job_in_its_name() {
    let bench = Bench::new("asking");
    for (what, why) in [
        (
            "answer",
            "rank 1 (site 'lab'): sent a message that only an agent may send",
        ),
        (
            "flood",
            "rank 1 (site 'lab'): it broke the protocol: it asked more than 64 questions at a time",
        ),
    ] {
        let done = bench.run(&format!("run --site home:1 --site lab:1 {} {what} 0 1", Bench::fake()));
        assert_eq!(done.code(), Some(1), "{done:?}");
        assert!(done.errors.contains(why), "{}", done.errors);
    }
}
