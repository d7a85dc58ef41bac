// SPDX-License-Identifier: Apache-2.0
//! Messages about files, and what file systems say of them.

use isthmus_wire::file::{self, Question, What};
use isthmus_wire::requests::{self, Pointer, Target};
use isthmus_wire::rma;
use isthmus_wire::rma::bundle::{Bundle, Mark};
use isthmus_wire::stripe::Layout;

/// Messages about files: a call, a question, an answer, runs, a body.
pub(crate) fn messages(bytes: &[u8]) {
    if let Ok(question) = Question::decode(bytes) {
        assert_eq!(Question::decode(&question.encode()), Ok(question));
    }
    if let Ok(call) = file::Call::decode(bytes) {
        assert_eq!(call.encode(), bytes);
    }
    if let Ok(answer) = file::Answer::decode(bytes) {
        // A text that is not UTF-8 was mended, which may make it longer than one may be.
        if answer.text.len() <= file::MAX_TEXT {
            assert_eq!(file::Answer::decode(&answer.encode()), Ok(answer));
        }
    }
    let number = usize::from(bytes.first().copied().unwrap_or(0)) / 8;
    if let Ok((runs, total, rest)) = file::decode_runs(bytes, number, 1 << 20) {
        assert_eq!(runs.iter().map(|run| run.1).sum::<u64>(), total);
        let mut again = file::encode_runs(&runs);
        again.extend(rest);
        assert_eq!(again, bytes);
    }
    if let Ok((runs, data)) = file::decode_body(bytes, 1 << 20) {
        let mut again = file::encode_body(&runs);
        again.extend(data);
        assert_eq!((again.len(), &again[..]), (file::body_bytes(&runs), bytes));
    }
}

/// Operations on windows of other processes, and their failures.
pub(crate) fn windows(bytes: &[u8]) {
    if let Ok(operation) = rma::Operation::decode(bytes) {
        assert_eq!(operation.encode(), bytes);
        assert!(operation.data.is_empty() || operation.data.len() as u64 == operation.length);
    }
    if let Ok(failure) = rma::Failure::decode(bytes) {
        assert_eq!(failure.encode(), bytes);
    }
    bundles(bytes);
}

/// Operations on windows that leave together.
fn bundles(bytes: &[u8]) {
    let (mut mark, mut again, mut all) = (Mark::default(), Bundle::default(), Vec::new());
    while let Ok(Some(operation)) = mark.next(bytes) {
        // A liar may repeat what goes without saying, which takes more room than there is for it again.
        if !Bundle::suits(&operation) || !again.has_room(&operation) {
            return;
        }
        again.push(&operation);
        all.push(operation);
    }
    let (again, mut mark) = (again.into_bytes(), Mark::default());
    assert!(
        all.iter()
            .all(|operation| mark.next(&again).as_ref() == Ok(&Some(operation.clone())))
    );
    assert_eq!(mark.next(&again), Ok(None));
}

/// Remote service requests to global pointers.
pub(crate) fn requests(bytes: &[u8]) {
    if let Ok((target, data)) = Target::decode(bytes) {
        assert_eq!([&target.encode()[..], data].concat(), bytes);
    }
    if let Some((head, _)) = bytes.split_first_chunk::<{ requests::POINTER_BYTES }>() {
        if let Ok(pointer) = Pointer::decode(head) {
            assert_eq!(pointer.encode(), *head);
        }
    }
    if let Some((head, _)) = bytes.split_first_chunk() {
        let tag = i32::from_le_bytes(*head);
        if let Some((what, handler)) = requests::What::from_tag(tag) {
            assert_eq!(what.tag(handler), tag);
        }
    }
}

pub(crate) fn pointers() -> Vec<Vec<u8>> {
    let target = Target {
        region: 1,
        address: 0x7f00_0000_1000,
        length: 64,
    };
    let pointer = Pointer {
        job: requests::job_number("job"),
        rank: 3,
        target,
    };
    let mut request = target.encode().to_vec();
    request.extend([7; 8]);
    let tag = requests::What::Point.tag(3).to_le_bytes().to_vec();
    vec![request, pointer.encode().to_vec(), tag]
}

pub(crate) fn operations() -> Vec<Vec<u8>> {
    use rma::Does::{Accumulate, Fetch, Get, Put, Swap};
    let operation = |does| rma::Operation {
        does,
        op: 0x21,
        question: u32::from(matches!(does, Get | Fetch | Swap)),
        first: 0,
        place: 64,
        count: 2,
        length: 8,
        number: 1,
        datatype: &[1, 1, 2, 3],
        data: &[7; 8],
    };
    let failure = rma::Failure {
        class: 55,
        text: "no".to_owned(),
    };
    let mut bundle = Bundle::default();
    for does in [Put, Put, Accumulate] {
        bundle.push(&operation(does));
    }
    let all = [Put, Get, Accumulate, Fetch, Swap].into_iter();
    all.map(|does| operation(does).encode())
        .chain([failure.encode(), bundle.into_bytes()])
        .collect()
}

pub(crate) fn corpus() -> Vec<Vec<u8>> {
    let whats = [
        What::Stop,
        What::Advance,
        What::Read,
        What::Write,
        What::Size,
        What::SetSize,
        What::Preallocate,
        What::Sync,
        What::Seek,
        What::Atomic,
    ];
    let question = |what| Question {
        what,
        answer: 1,
        number: 1,
        payload: if matches!(what, What::Read | What::Write) {
            16
        } else {
            0
        },
    };
    let answer = file::Answer {
        class: 35,
        text: "no".to_owned(),
        bytes: 4,
        data: vec![1, 2, 3, 4],
    };
    let mut all: Vec<_> = whats.map(|what| question(what).encode().to_vec()).into();
    let mut body = file::encode_body(&[(8, 4), (16, 4)]);
    body.extend([7; 8]);
    let path = file::Path {
        below_home: true,
        bytes: b"/x".to_vec(),
    };
    let open = file::Call::Open(file::Open {
        amode: 9,
        permissions: 0o666,
        context: 16,
        members: vec![(0, 2), (5, 1)],
        path: path.clone(),
    });
    all.extend([file::Call::Delete(path).encode(), open.encode(), answer.encode()]);
    all.extend([file::encode_runs(&[(8, 4), (16, 4)]), body]);
    all
}

/// How Lustre has laid a file out.
pub(crate) fn stripes(bytes: &[u8]) {
    if let Some(layout) = Layout::parse(bytes) {
        assert!(layout.unit > 0 && layout.count != u16::MAX);
        assert_eq!(Layout::decode(u64::from_le_bytes(layout.encode())), layout);
    }
}

pub(crate) fn layouts() -> Vec<Vec<u8>> {
    // Eight stripes of 4 MiB, plain and as the only component.
    let mut plain = 0x0bd3_0bd0_u32.to_le_bytes().to_vec();
    plain.resize(24, 0);
    plain.extend((4_u32 << 20).to_le_bytes());
    plain.extend(8_u16.to_le_bytes());
    plain.resize(48, 0);
    let mut whole = 0x0bd6_0bd0_u32.to_le_bytes().to_vec();
    whole.resize(14, 0);
    whole.extend(1_u16.to_le_bytes());
    whole.resize(32 + 24, 0);
    whole.extend(80_u32.to_le_bytes());
    whole.resize(80, 0);
    whole.extend(&plain);
    vec![plain, whole]
}
