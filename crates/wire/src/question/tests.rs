// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::boot::{MAX_REASON, Message};

fn asks() -> Vec<Ask> {
    let (name, port) = ("ocean".to_owned(), "isthmus1:x".to_owned());
    let mut all = vec![Ask::Publish {
        scope: Scope::User,
        name: name.clone(),
        port: port.clone(),
    }];
    all.push(Ask::Spawn {
        port: port.clone(),
        parts: vec![SpawnProgram {
            program: "./x".into(),
            arguments: vec![String::new(), "a b".into()],
            processes: 4,
            keys: vec![("wdir".into(), "/tmp".into())],
        }],
    });
    all.extend([None, Some([5; 16])].map(|gate| Ask::Enter { port: 4711, gate }));
    all.push(Ask::Cross {
        entries: vec![crate::entry::sample(); 2],
    });
    all.push(Ask::Leave {
        keys: vec![[1; 16]],
        ports: vec![1, 2],
    });
    all.extend([Ask::Apart(true), Ask::Apart(false)]);
    all.push(Ask::Met {
        meeting: [7; 16],
        with: vec![crate::joined::sample(); 2],
    });
    all.push(Ask::Parted { meeting: [7; 16] });
    all.push(Ask::Prove {
        secret: [1; 16],
        fingerprint: [2; 32],
        keys: vec!["own".into()],
    });
    all.extend([None, Some(Vec::new()), Some(vec![7])].map(|what| Ask::Tell { world: [8; 16], what }));
    all.push(Ask::Hear { world: [8; 16] });
    for scope in [None, Some(Scope::Job), Some(Scope::User)] {
        let (name, port) = (name.clone(), port.clone());
        all.push(Ask::Lookup {
            scope,
            name: name.clone(),
        });
        all.push(Ask::Unpublish { scope, name, port });
    }
    all
}

#[test]
fn questions_and_answers_survive_the_wire_and_their_truncations_do_not() {
    let questions = asks()
        .into_iter()
        .map(|ask| Message::Question(Question { number: 7, ask }));
    let said = [
        Ok(Said::Done),
        Ok(Said::Started(Started {
            world: [7; 16],
            goes_on: true,
            carried: true,
            processes: vec![2, 0],
        })),
        Ok(Said::Entry(crate::entry::sample())),
        Ok(Said::Ports {
            ports: vec![40001, 40002],
            at_gateway: true,
        }),
        Ok(Said::Proofs(vec![[3; 16]; 2])),
        Ok(Said::Told(vec![1, 2])),
        Ok(Said::Port("p".repeat(MAX_PORT))),
        Err(Refusal::new(Kind::Unknown, "nobody has published 'x'")),
    ];
    let answers = said.map(|said| Message::Answer(Answer { number: u64::MAX, said }));
    for message in questions.chain(answers) {
        let whole = message.encode();
        assert_eq!(Message::decode(&whole[4..]), Ok(message));
        for end in 4..whole.len() {
            assert!(Message::decode(&whole[4..end]).is_err(), "{end} bytes were accepted");
        }
    }
}

#[test]
fn what_is_too_long_is_refused_and_reasons_are_cut() {
    let lookup = |length| {
        let ask = Ask::Lookup {
            scope: None,
            name: "x".repeat(length),
        };
        Message::decode(&Message::Question(Question { number: 1, ask }).encode()[4..])
    };
    assert!(lookup(MAX_NAME).is_ok() && lookup(MAX_NAME + 1).is_err());
    let many = Ask::Spawn {
        port: String::new(),
        parts: vec![
            SpawnProgram {
                program: String::new(),
                arguments: vec![],
                processes: 1,
                keys: vec![],
            };
            MAX_PARTS + 1
        ],
    };
    let many = Message::Question(Question { number: 1, ask: many });
    assert!(Message::decode(&many.encode()[4..]).is_err());
    let with = |count| Ask::Met {
        meeting: [7; 16],
        with: vec![crate::joined::sample(); count],
    };
    let met = |count| {
        Message::Question(Question {
            number: 1,
            ask: with(count),
        })
        .encode()
    };
    let most = crate::joined::MAX_GROUPS;
    assert!(Message::decode(&met(most)[4..]).is_ok() && Message::decode(&met(most + 1)[4..]).is_err());
    let mut long = Writer::new(11);
    long.u64(1).u8(3).u8(0).bytes(&vec![b'x'; MAX_LENGTH]);
    assert!(matches!(
        Message::decode(&long.into_body()),
        Err(DecodeError::Invalid { field: "question", .. })
    ));
    let refused = Err(Refusal::new(Kind::Unable, "x".repeat(2 * MAX_REASON)));
    let answer = Message::Answer(Answer {
        number: 1,
        said: refused,
    });
    assert!(Message::decode(&answer.encode()[4..]).is_ok());
}
