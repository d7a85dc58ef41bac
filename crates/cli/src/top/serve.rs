// SPDX-License-Identifier: Apache-2.0
//! `isthmus top --serve`: the page of a job that goes on, for a browser here or at the other end of `ssh -L`.
//!
//! It listens on the loopback interface only, ends with the command, and shows nothing to whoever does not know the
//! token in the address. A page of another site in the same browser cannot guess it; one that gives our address a name
//! of its own is refused by the name. What may be asked is bounded: a few connections at a time, short requests, some
//! seconds for each.

use isthmus_launch::record::{self, Found, Unread};
use serde_json::json;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Longest request, bytes: browsers send less than 2 KiB.
const MOST_REQUEST: usize = 8 << 10;
/// Connections at a time.
const MOST_CONNECTIONS: usize = 16;
/// How long a request may take to come, and its answer to leave.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of the token.
const TOKEN: usize = 16;

/// Serves the page of this job until the command ends.
pub(super) fn serve(name: String, port: u16) -> Result<(), String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
        format!("cannot listen on port {port} of this machine: {error}; choose another one, or none")
    })?;
    let address = listener
        .local_addr()
        .map_err(|error| format!("cannot tell the port: {error}"))?;
    let token = token().map_err(|error| format!("cannot read /dev/urandom: {error}"))?;
    let server = Arc::new(Server { name, token });
    server.tell(address);
    let busy = Arc::new(AtomicUsize::new(0));
    for connection in listener.incoming() {
        // One that was given up before it was taken, or too many open files: the next one may do better.
        let Ok(stream) = connection else {
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        // Nobody at home waits in a queue: who comes when all are busy is turned away.
        if busy.fetch_add(1, Ordering::SeqCst) >= MOST_CONNECTIONS {
            busy.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let (server, done) = (Arc::clone(&server), Arc::clone(&busy));
        std::thread::spawn(move || {
            // A browser that went away needs no answer.
            let _ = server.answer(stream);
            done.fetch_sub(1, Ordering::SeqCst);
        });
    }
    Ok(())
}

fn token() -> io::Result<String> {
    let mut bytes = [0; TOKEN];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

struct Server {
    name: String,
    token: String,
}

/// An answer.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: &'static str,
    kind: &'static str,
    body: String,
}

impl Answer {
    fn text(status: &'static str, body: &str) -> Self {
        Self {
            status,
            kind: "text/plain; charset=utf-8",
            body: format!("{body}\n"),
        }
    }
}

impl Server {
    fn tell(&self, address: SocketAddr) {
        let port = address.port();
        crate::print(&format!("http://127.0.0.1:{port}/{}/", self.token));
        crate::complain(&format!(
            "isthmus: the page of job {}, for browsers on this machine, until you press Ctrl-C. From another machine:\n  \
             ssh -L {port}:127.0.0.1:{port} THIS_MACHINE, and the same address there. Everybody who has the address can see the job.",
            self.name
        ));
    }

    fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_write_timeout(Some(PATIENCE))?;
        let answer = match request(&mut stream)? {
            Some(head) => self.answer_to(&head, record::read),
            None => Answer::text("431 Request Header Fields Too Large", "the request is too long"),
        };
        let head = format!(
            "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n\
             Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n\r\n",
            answer.status,
            answer.kind,
            answer.body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(answer.body.as_bytes())
    }

    /// To the head of a request.
    fn answer_to(&self, head: &str, read: impl FnOnce(Option<&str>) -> Result<Found, Unread>) -> Answer {
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some("GET"), Some(target), Some("HTTP/1.1" | "HTTP/1.0")) = (words.next(), words.next(), words.next())
        else {
            return Answer::text("400 Bad Request", "this serves GET of HTTP/1.1");
        };
        // A name that somebody made for our address could be that of a page which wants to read this one.
        let host = lines.find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("host").then(|| value.trim())
        });
        if !host.is_some_and(is_loopback) {
            return Answer::text(
                "421 Misdirected Request",
                "this is served to 127.0.0.1 and localhost only",
            );
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut parts = path.trim_start_matches('/').splitn(2, '/');
        let given = parts.next().unwrap_or_default();
        if !equal(given, &self.token) {
            return Answer::text(
                "404 Not Found",
                "there is nothing here: the address has a secret part that isthmus top printed",
            );
        }
        let found = match read(Some(&self.name)) {
            Ok(found) => found,
            Err(why) => return Answer::text("410 Gone", &why.to_string()),
        };
        match parts.next() {
            Some("") => Answer {
                status: "200 OK",
                kind: "text/html; charset=utf-8",
                body: crate::report::page(&found, true),
            },
            Some("lines") => {
                let from = query
                    .strip_prefix("from=")
                    .and_then(|n| n.parse::<usize>().ok())
                    .unwrap_or(0);
                let lines = found.lines.get(from..).unwrap_or_default();
                Answer {
                    status: "200 OK",
                    kind: "application/json",
                    body: json!({ "lines": lines }).to_string(),
                }
            }
            _ => Answer::text("404 Not Found", "there is no such page"),
        }
    }
}

/// The head of a request; `None`: too long.
fn request(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let until = Instant::now() + PATIENCE;
    let (mut head, mut piece) = (Vec::new(), [0; 2048]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let read = stream.read(&mut piece)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(&piece[..read]);
        if let Some(end) = head.windows(4).position(|w| w == b"\r\n\r\n") {
            return Ok(Some(String::from_utf8_lossy(&head[..end]).into_owned()));
        }
        if head.len() > MOST_REQUEST {
            return Ok(None);
        }
    }
}

/// Whether this is the loopback interface by one of its usual names, with any port: `ssh -L` may use another one.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.is_empty() => name,
        _ => host,
    };
    matches!(name, "127.0.0.1" | "localhost" | "[::1]")
}

/// In a time that does not tell where they differ.
fn equal(given: &str, token: &str) -> bool {
    let differ = given.bytes().zip(token.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    given.len() == token.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(head: &str) -> Answer {
        let server = Server {
            name: "j".into(),
            token: "00ff".into(),
        };
        server.answer_to(head, |_| {
            Ok(Found {
                name: "j".into(),
                lines: vec![json!({"event": "record"}), json!({"event": "start"})],
            })
        })
    }

    #[test]
    fn the_page_and_its_news_are_for_who_knows_the_token() {
        let page = ask("GET /00ff/ HTTP/1.1\r\nHost: 127.0.0.1:8080");
        assert_eq!((page.status, page.kind), ("200 OK", "text/html; charset=utf-8"));
        let news = ask("GET /00ff/lines?from=1 HTTP/1.1\r\nhost: localhost:9");
        assert_eq!(news.body, "{\"lines\":[{\"event\":\"start\"}]}");
        assert_eq!(
            ask("GET /00ff/lines?from=99 HTTP/1.1\r\nHost: localhost").body,
            "{\"lines\":[]}"
        );
    }

    #[test]
    fn all_others_learn_nothing() {
        for head in [
            "GET / HTTP/1.1\r\nHost: localhost",
            "GET /00fe/ HTTP/1.1\r\nHost: localhost",
            "GET /00ff0/ HTTP/1.1\r\nHost: localhost",
            "GET /00ff/../x HTTP/1.1\r\nHost: localhost",
            "GET /00ff/ HTTP/1.1\r\nHost: evil.example",
            "GET /00ff/ HTTP/1.1\r\nHost: 127.0.0.1.evil.example:80",
            "GET /00ff/ HTTP/1.1",
            "POST /00ff/ HTTP/1.1\r\nHost: localhost",
            "",
            "GET",
        ] {
            let answer = ask(head);
            assert!(
                answer.status.starts_with('4') && !answer.body.contains("record"),
                "{head}: {answer:?}"
            );
        }
    }

    #[test]
    fn tokens_are_long_and_differ() {
        let (one, other) = (token().unwrap(), token().unwrap());
        assert!(one.len() == 2 * TOKEN && one != other);
    }
}
