// SPDX-License-Identifier: Apache-2.0
//! Lines that break.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// What stands between two processes and can do harm.
#[derive(Clone)]
pub(crate) struct Middle {
    pub(crate) port: u16,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    pub(crate) silent: Arc<AtomicBool>,
}

impl Middle {
    pub(crate) fn new(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let middle = Self {
            port: listener.local_addr().unwrap().port(),
            streams: Arc::default(),
            silent: Arc::default(),
        };
        let this = middle.clone();
        std::thread::spawn(move || {
            for a in listener.incoming().map_while(Result::ok) {
                let Ok(b) = TcpStream::connect(("127.0.0.1", to)) else {
                    continue;
                };
                // What was connected while the line was silent stays silent.
                let silent = this.silent.load(Ordering::SeqCst);
                for (from, to) in [(&a, &b), (&b, &a)] {
                    this.streams.lock().unwrap().push(from.try_clone().unwrap());
                    this.clone()
                        .carry(from.try_clone().unwrap(), to.try_clone().unwrap(), silent);
                }
            }
        });
        middle
    }

    fn carry(self, mut from: TcpStream, mut to: TcpStream, mut silent: bool) {
        std::thread::spawn(move || {
            let mut buffer = [0; 5000];
            loop {
                let n = match from.read(&mut buffer) {
                    Ok(0) | Err(_) => break,
                    Ok(n) => n,
                };
                silent |= self.silent.load(Ordering::SeqCst);
                if silent {
                    continue;
                }
                if to.write_all(&buffer[..n]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
        });
    }

    pub(crate) fn reset(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
