// SPDX-License-Identifier: Apache-2.0
use super::*;

fn ends() -> (Records, Records) {
    let end = || Records::new(Known::keys(0), Known::keys(0), Box::new(Known::default())).unwrap();
    (end(), end())
}

fn sealed(records: &mut Records, plain: &[u8]) -> Vec<u8> {
    let mut room = vec![0; plain.len() + plain.len() / 64 + 256];
    let used = records.seal(plain, &mut room).unwrap();
    room.truncate(used);
    room
}

/// One record as it is.
fn record(records: &mut Records, kind: u8, content: &[u8]) -> Vec<u8> {
    let mut room = vec![0; content.len() + ADDED];
    assert_eq!(records.record(kind, content, &mut room).unwrap(), room.len());
    room
}

fn opened(records: &mut Records, input: &mut [u8]) -> Result<(Opened, Vec<u8>), Failure> {
    let mut got = Vec::new();
    let opened = records.open(input, &mut |content| got.extend_from_slice(content))?;
    Ok((opened, got))
}

fn violation(records: &mut Records, input: &mut [u8]) -> Violation {
    match opened(records, input) {
        Err(Failure::Peer(violation)) => violation,
        other => panic!("{other:?}"),
    }
}

#[test]
fn bytes_come_out_however_the_stream_is_cut() {
    let plain: Vec<u8> = (0..50_000u32).map(|i| i as u8).collect();
    for step in [1000, 16_405, 16_406, 16_407, 100_000] {
        let (mut here, mut there) = ends();
        let stream = sealed(&mut here, &plain);
        assert_eq!(stream.len(), plain.len() + 4 * ADDED);
        let (mut tail, mut got) = (Vec::new(), Vec::new());
        for piece in stream.chunks(step) {
            tail.extend_from_slice(piece);
            let (opened, data) = opened(&mut there, &mut tail).unwrap();
            assert!(!opened.ended);
            tail.drain(..opened.used);
            got.extend_from_slice(&data);
        }
        assert!(tail.is_empty() && got == plain, "pieces of {step}");
    }
}

#[test]
fn what_fits_is_sealed() {
    let (mut here, _) = ends();
    for room in [0, 1, 21, 22, 48, 49, 50, 16_400, 16_500, 33_000, 300_000] {
        here.owed = true;
        let plain = vec![1; Records::fits(room)];
        assert!(here.seal(&plain, &mut vec![0; room]).is_ok(), "room of {room}");
    }
    assert!(Records::fits(300_000) > 299_000);
    assert!(matches!(here.seal(&[1; 100], &mut [0; 121]), Err(Failure::NoRoom)));
}

#[test]
fn keys_change_when_they_are_used_up() {
    let (mut here, mut there) = ends();
    here.lasts = 2;
    let mut stream: Vec<u8> = (0..5).flat_map(|i| sealed(&mut here, &[i; 9])).collect();
    let got = opened(&mut there, &mut stream).unwrap().1;
    assert_eq!(got, (0..5).flat_map(|i| [i; 9]).collect::<Vec<u8>>());
    assert_eq!(here.outgoing.number(), 1, "the third key");
    assert_eq!(there.incoming.number(), 1);
}

#[test]
fn a_peer_that_asks_for_another_key_gets_it() {
    let (mut here, mut there) = ends();
    let mut ask = record(&mut here, HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, 1]);
    opened(&mut there, &mut ask).unwrap();
    assert!(there.owed);
    // The fake keys are the same for both directions, so the next ones of `there` are the second.
    let mut answer = sealed(&mut there, b"new");
    assert!(!there.owed);
    assert_eq!(answer.len(), ADDED + UPDATE + ADDED + 3);
    let (first, second) = answer.split_at_mut(ADDED + UPDATE);
    assert_eq!(opened(&mut here, first).unwrap().0.used, first.len());
    here.incoming = Cipher::new(Known::keys(2)).unwrap();
    assert_eq!(opened(&mut here, second).unwrap().1, b"new");
}

#[test]
fn zeros_after_the_kind_are_no_content() {
    let (mut here, mut there) = ends();
    let padded = [&b"data"[..], &[DATA], &[0; 100]].concat();
    let mut stream = record(&mut here, 0, &padded);
    assert_eq!(opened(&mut there, &mut stream).unwrap().1, b"data");
    let mut stream = record(&mut here, 0, &[0; 20]);
    assert!(matches!(violation(&mut there, &mut stream), Violation::Unexpected(_)));
}

#[test]
fn a_goodbye_is_the_end_and_another_alert_a_failure() {
    let (mut here, mut there) = ends();
    let mut stream = [record(&mut here, ALERT, &[1, CLOSE_NOTIFY]), vec![1; 50]].concat();
    assert!(opened(&mut there, &mut stream).unwrap().0.ended);
    let (mut here, mut there) = ends();
    let mut room = [0; 64];
    let used = here.alert(&Violation::Forged.into(), &mut room);
    let told = violation(&mut there, &mut room[..used]);
    assert_eq!(told, Violation::Alert(AlertDescription::BadRecordMac));
    assert_eq!(here.alert(&told.into(), &mut room), 0, "no alert answers an alert");
}

#[test]
fn peers_that_break_the_rules_are_named() {
    let fresh = |kind: u8, content: &[u8]| {
        let (mut here, there) = ends();
        (there, record(&mut here, kind, content))
    };
    for at in [3, HEAD, 20] {
        let (mut there, mut stream) = fresh(DATA, &[1; 300]);
        stream[at] ^= 1;
        stream.resize(2000, 0);
        let said = violation(&mut there, &mut stream);
        assert_eq!(said, Violation::Forged, "byte {at}");
    }
    let (mut there, mut stream) = fresh(DATA, b"x");
    stream[0] = 20;
    assert!(matches!(violation(&mut there, &mut stream), Violation::Unexpected(_)));
    let mut long = [DATA, 3, 3, 0xff, 0xff];
    assert_eq!(violation(&mut ends().1, &mut long), Violation::TooLong(0xffff));
    let mut empty = [DATA, 3, 3, 0, 0];
    assert_eq!(violation(&mut ends().1, &mut empty), Violation::Forged);
    let (mut there, mut stream) = fresh(DATA, &[1; CONTENT + 1]);
    assert_eq!(violation(&mut there, &mut stream), Violation::TooLong(CONTENT + 2));
    let wrong: [(u8, &[u8]); 6] = [
        (HANDSHAKE, &[4, 0, 0, 0]),
        (HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, 2]),
        (HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, 0, 0]),
        (HANDSHAKE, &[]),
        (ALERT, &[1]),
        (25, &[1]),
    ];
    for (kind, content) in wrong {
        let (mut there, mut stream) = fresh(kind, content);
        let said = violation(&mut there, &mut stream);
        assert!(matches!(said, Violation::Unexpected(_)), "{kind} {content:?}: {said}");
    }
}

#[test]
fn a_record_is_not_taken_twice() {
    let (mut here, mut there) = ends();
    let stream = sealed(&mut here, b"once");
    opened(&mut there, &mut stream.clone()).unwrap();
    assert_eq!(violation(&mut there, &mut stream.clone()), Violation::Forged);
}

#[test]
fn the_fuzz_target_sees_data_and_changes_of_key() {
    let bytes = [
        &[DATA, 3, 1, 2, 3, HANDSHAKE, 5, KEY_UPDATE, 0, 0, 1, 1, DATA, 2, 4, 5][..],
        &[1],
    ]
    .concat();
    assert_eq!(fuzz_records(&bytes), 5);
}
