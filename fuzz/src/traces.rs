// SPDX-License-Identifier: Apache-2.0
//! Traces of parts of a world, from files of whoever.

use isthmus_launch::traces::{Part, merge};
use std::io::Cursor;

/// Two files with a zero between them.
pub(crate) fn two(bytes: &[u8]) {
    let files = bytes.splitn(2, |byte| *byte == 0);
    let mut parts: Vec<Part<Cursor<&[u8]>>> = files
        .map(|file| Part {
            name: "part".to_owned(),
            file: Cursor::new(file),
        })
        .collect();
    let mut all = Vec::new();
    if let Ok(merged) = merge(&mut parts, &mut all) {
        assert_eq!(merged.clocks.len(), parts.len());
        assert!(all.ends_with(b"}\n"));
    }
}

pub(crate) fn samples() -> Vec<Vec<u8>> {
    let trace = |rank: u32, peer: u32| {
        let message = |track: u32, at: f64| {
            format!(
                "{{\"args\":{{\"context\":2,\"number\":1,\"peer\":{peer}}},\"cat\":\"message\",\"ph\":\"X\",\"pid\":{rank},\"tid\":{track},\
                 \"ts\":{at}}}"
            )
        };
        let lines = [
            format!("{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{rank}}}"),
            message(1, 1.5),
            message(2, 7.25),
            format!("{{\"id\":3,\"ph\":\"s\",\"pid\":{rank},\"tid\":1,\"ts\":2.0}}"),
        ];
        let end = "],\"otherData\":{\"began_nanoseconds\":1700000000000000000,\"events_not_recorded\":0}}";
        let events = lines.join(",\n");
        format!("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{events}\n{end}\n")
    };
    let (one, two) = (trace(0, 1), trace(1, 0));
    vec![format!("{one}\0{two}").into_bytes(), one.into_bytes()]
}
