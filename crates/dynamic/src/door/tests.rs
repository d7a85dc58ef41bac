// SPDX-License-Identifier: Apache-2.0
//! Strangers at the door.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::*;

/// The door is one for the whole process, and a crowd may push out who comes to it.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

const SOON: Duration = Duration::from_secs(5);

fn address(name: &PortName) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], name.port))
}

/// A port that takes whoever knows its name.
fn any_port() -> Result<String> {
    opened(|_| Entered::default(), false, |_, _| Ok(Takes::Anybody))
}

/// Moves a connection until it has a message or ends.
fn answer(contact: &mut Contact) -> std::result::Result<Message, String> {
    let until = Instant::now() + SOON;
    while Instant::now() < until {
        contact.advance()?;
        if let Some(message) = contact.receive()? {
            return Message::decode(&message).map_err(|error| error.to_string());
        }
        std::thread::yield_now();
    }
    Err("no answer".to_owned())
}

fn greet(name: &PortName, secret: Secret) -> Contact {
    let mut contact = Contact::dial(address(name), name.fingerprint, SOON).expect("it listens");
    contact.send(&Message::Greeting(secret, Vec::new()).encode());
    contact
}

/// Whoever comes is let in at the port, and hears so.
fn welcome(port: &str, friend: &mut Contact) {
    let until = Instant::now() + SOON;
    let mut accepted = loop {
        friend.advance().expect("it is not thrown out");
        if let Some(contact) = next(port).expect("it is open") {
            break contact;
        }
        assert!(Instant::now() < until, "it is not let in");
    };
    accepted.send(&Message::Welcome.encode());
    accepted.advance().expect("it lives");
    assert_eq!(answer(friend), Ok(Message::Welcome));
}

/// Who waits at the port next.
fn waits(port: &str) -> Contact {
    let until = Instant::now() + SOON;
    loop {
        if let Some(contact) = next(port).expect("it is open") {
            return contact;
        }
        assert!(Instant::now() < until, "nobody comes");
        std::thread::yield_now();
    }
}

#[test]
fn strangers_are_refused_and_hold_nobody_up() {
    let _alone = alone();
    let port = any_port().expect("a port");
    let name = PortName::decode(&port).expect("its own name");
    // A wrong secret.
    let refused = answer(&mut greet(&name, [1; 16])).expect("it is told");
    assert!(matches!(refused, Message::Refused(_)), "{refused:?}");
    // An old one.
    let old = any_port().expect("another one");
    close_port(&old).expect("it is open");
    let old = PortName::decode(&old).expect("a name").secret;
    assert!(matches!(answer(&mut greet(&name, old)), Ok(Message::Refused(_))));
    // Another message than a greeting, and one that is too long.
    for message in [Message::Here.encode(), vec![0; 1000]] {
        let mut contact = Contact::dial(address(&name), name.fingerprint, SOON).expect("it listens");
        contact.send(&message);
        assert!(answer(&mut contact).is_err());
    }
    // Garbage, and those that say nothing: more than there is room for.
    let mut crowd = Vec::new();
    for at in 0..300u32 {
        let mut socket = TcpStream::connect_timeout(&address(&name), SOON).expect("it listens");
        if at % 2 == 0 {
            // It may be gone already.
            let _ = socket.write_all(&[at as u8; 100]);
        }
        crowd.push(socket);
    }
    // Meanwhile who knows the name comes in.
    let mut friend = greet(&name, name.secret);
    welcome(&port, &mut friend);
    // All of the crowd are gone in time.
    for mut socket in crowd {
        socket.set_read_timeout(Some(SOON)).expect("a time");
        let mut bytes = [0; 64];
        loop {
            match socket.read(&mut bytes) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
                    break;
                }
            }
        }
    }
    close_port(&port).expect("it is open");
}

#[test]
fn who_waits_at_a_port_that_closes_is_told() {
    let _alone = alone();
    let port = any_port().expect("a port");
    let name = PortName::decode(&port).expect("its own name");
    let mut first = greet(&name, name.secret);
    first.advance().expect("it lives");
    let until = Instant::now() + SOON;
    let waiting = || {
        door()
            .as_ref()
            .map_or(0, |door| door.shared.waiting().ports[&name.secret].queue.len())
    };
    while waiting() == 0 {
        first.advance().expect("it is not thrown out");
        assert!(Instant::now() < until, "it is not let in");
    }
    close_port(&port).expect("it is open");
    assert_eq!(answer(&mut first), Ok(Message::Refused(CLOSED.to_owned())));
    let error = close_port(&port).expect_err("it is closed");
    assert_eq!(error.class, abi::MPI_ERR_PORT);
    for name in ["", "isthmus1:", "somewhere", &port] {
        assert_eq!(next(name).expect_err("no port").class, abi::MPI_ERR_PORT);
    }
}

#[test]
fn ports_are_told_apart() {
    let _alone = alone();
    let ports = [(); 3].map(|()| any_port().expect("a port"));
    let names = ports
        .each_ref()
        .map(|port| PortName::decode(port).expect("its own name"));
    let mut greeted = names.each_ref().map(|name| greet(name, name.secret));
    for (at, port) in ports.iter().enumerate().rev() {
        while greeted[at].is_handshaking() || !greeted[at].has_left() {
            greeted[at].advance().expect("it lives");
        }
        let mut contact = waits(port);
        contact.send(&[&Message::Refused(at.to_string())].map(Message::encode).concat());
        contact.advance().expect("it lives");
        assert_eq!(answer(&mut greeted[at]), Ok(Message::Refused(at.to_string())));
    }
    ports.iter().for_each(|port| close_port(port).expect("it is open"));
}

#[test]
fn errors_do_not_repeat_names_since_whoever_knows_one_can_connect() {
    let _alone = alone();
    let port = any_port().expect("a port");
    close_port(&port).expect("it is open");
    for name in [port.as_str(), &port[..port.len() - 3]] {
        let error = close_port(name).expect_err("it is closed, or cut off");
        assert_eq!(error.class, abi::MPI_ERR_PORT);
        assert!(!error.to_string().contains(&name[9..30]), "{error}");
    }
}

#[test]
fn who_knows_the_name_and_has_no_key_of_the_user_is_refused() {
    let _alone = alone();
    let right = [5; 16];
    let port = opened(
        |_| Entered::default(),
        true,
        |_, _| Ok(Takes::Proven(vec![[4; 16], right])),
    )
    .expect("a port");
    let name = PortName::decode(&port).expect("its own name");
    assert!(name.proofs);
    let show = |proofs: &[Proof]| {
        let mut contact = Contact::dial(address(&name), name.fingerprint, SOON).expect("it listens");
        contact.send(&Message::Greeting(name.secret, proofs.to_vec()).encode());
        contact
    };
    for proofs in [&[][..], &[[6; 16]], &[[0; 16]; 12]] {
        assert_eq!(answer(&mut show(proofs)), Ok(Message::NoKey), "{proofs:?}");
    }
    // More than there may be, and a proof that is cut.
    let cut = Message::Greeting(name.secret, vec![right]).encode();
    for message in [
        Message::Greeting(name.secret, vec![right; 13]).encode(),
        cut[..cut.len() - 1].to_vec(),
    ] {
        let mut contact = Contact::dial(address(&name), name.fingerprint, SOON).expect("it listens");
        contact.send(&message);
        assert!(answer(&mut contact).is_err());
    }
    welcome(&port, &mut show(&[[6; 16], right]));
    // From now on anybody, and then only others: who waits is told.
    narrow(&port, &name.secret, Takes::Anybody).expect("it is open");
    welcome(&port, &mut show(&[]));
    let mut waits = show(&[right]);
    while waits.is_handshaking() || !waits.has_left() {
        waits.advance().expect("it lives");
    }
    let until = Instant::now() + SOON;
    let waiting = || {
        door()
            .as_ref()
            .map_or(0, |door| door.shared.waiting().ports[&name.secret].queue.len())
    };
    while waiting() == 0 {
        assert!(Instant::now() < until, "it is not let in");
        std::thread::yield_now();
    }
    narrow(&port, &name.secret, Takes::Proven(vec![[7; 16]])).expect("it is open");
    assert_eq!(answer(&mut waits), Ok(Message::NoKey));
    close_port(&port).expect("it is open");
}

#[test]
fn who_has_begun_keeps_its_place_for_a_while_and_who_says_nothing_gives_way() {
    let listener = isthmus_net::Listener::bind_here().expect("a port");
    let address = SocketAddr::from(([127, 0, 0, 1], listener.port()));
    let shared = Shared {
        waiting: Mutex::default(),
        pinned: Pinned::new().expect("a key"),
        bell: eventfd(0, EventfdFlags::CLOEXEC).expect("a descriptor"),
    };
    let fingerprint = shared.pinned.fingerprint();
    let mut keeper = Keeper::new(Arc::new(shared), Contacts::at(listener));
    let mut comers = Vec::new();
    for at in 0..MAX_STRANGERS {
        let mut comer = Contact::dial(address, fingerprint, SOON).expect("it listens");
        if at != 7 {
            comer.advance().expect("it lives");
        }
        comers.push(comer);
        while keeper.strangers.len() == at {
            keeper.let_in();
        }
        let stranger = &mut keeper.strangers[at];
        while at != 7 && !stranger.contact.has_heard() {
            stranger.contact.advance().expect("it lives");
        }
    }
    // All came at one time.
    let now = Instant::now();
    keeper.strangers.iter_mut().for_each(|stranger| stranger.came = now);
    assert_eq!(keeper.place(now), None);
    assert_eq!(keeper.place(now + SILENT), Some(Some(7)));
    assert_eq!(keeper.place(now + BEGUN), Some(Some(0)));
    keeper.strangers[7].came = now + SILENT;
    assert_eq!(keeper.place(now + SILENT), None);
    keeper.strangers.remove(9);
    assert_eq!(keeper.place(now), Some(None));
}
