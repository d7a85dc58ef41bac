// SPDX-License-Identifier: Apache-2.0
//! One stream of a trunk and the connection to a process at our end of it.

use std::rc::Rc;

use isthmus_link::handshake::Ends;
use std::time::Duration;

use isthmus_link::meter::MAX_STREAM;
use isthmus_wire::gateway::{READY, WISH_MEASURE, is_stream};
use isthmus_wire::rate::Rate;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

use crate::carrier::{Carrier, Piece, StreamRequest};
use crate::{Gateway, dial};

/// Longest wait for what a measurement gives.
const MEASURING: Duration = Duration::from_secs(10);
/// How long what was sent too much for a measurement is still taken.
const REST: Duration = Duration::from_secs(2);
/// Bytes that are read at once.
const READ: usize = 64 << 10;

/// Carries bytes between a connection and an open stream until both directions have ended.
pub(crate) async fn pump(carrier: &Rc<Carrier>, number: u32, stream: TcpStream) {
    let Some((pieces, gone)) = carrier.take(number) else {
        return;
    };
    let (reader, writer) = stream.into_split();
    let both = async {
        let (read, written) = tokio::join!(
            inward(carrier, number, reader),
            outward(carrier, number, writer, pieces)
        );
        read.and(written)
    };
    let whole = tokio::select! {
        done = both => done,
        () = gone.notified() => Err(()),
    };
    if whole.is_err() {
        carrier.reset(number);
    }
    carrier.forget(number);
}

/// From the process into the trunk.
async fn inward(carrier: &Rc<Carrier>, number: u32, mut reader: OwnedReadHalf) -> Result<(), ()> {
    let mut buffer = vec![0; READ];
    loop {
        let n = reader.read(&mut buffer).await.map_err(|_| ())?;
        if n == 0 {
            carrier.end(number);
            return Ok(());
        }
        carrier.send(number, &buffer[..n]).await;
    }
}

/// From the trunk to the process.
async fn outward(
    carrier: &Rc<Carrier>,
    number: u32,
    mut writer: OwnedWriteHalf,
    mut pieces: mpsc::UnboundedReceiver<Piece>,
) -> Result<(), ()> {
    while let Some(piece) = pieces.recv().await {
        match piece {
            Piece::Data(bytes) => {
                writer.write_all(&bytes).await.map_err(|_| ())?;
                carrier.consumed(number, bytes.len());
            }
            Piece::End => {
                let _ = writer.shutdown().await;
                return Ok(());
            }
        }
    }
    Err(())
}

/// How fast bytes arrive at the other end of a carrier, as it says there.
pub(crate) async fn measure(carrier: &Rc<Carrier>) -> Option<Rate> {
    let number = carrier.ask(Ends::of(0, 0), WISH_MEASURE).await.ok()?;
    let (mut pieces, _) = carrier.take(number)?;
    let sending = async {
        let piece = vec![0; READ];
        for _ in 0..2 * MAX_STREAM / READ as u64 {
            carrier.send(number, &piece).await;
        }
        tokio::time::sleep(MEASURING).await;
    };
    let answer = tokio::select! {
        answer = pieces.recv() => answer,
        () = sending => None,
        () = tokio::time::sleep(MEASURING) => None,
    };
    carrier.end(number);
    carrier.forget(number);
    match answer? {
        Piece::Data(bytes) => Rate::decode(&bytes).ok().flatten(),
        Piece::End => None,
    }
}

/// Takes the bytes of a measurement until they say enough, and tells what they say.
async fn sound(carrier: &Rc<Carrier>, number: u32) {
    carrier.begin_sounding().await;
    carrier.accept(number);
    let Some((mut pieces, _)) = carrier.take(number) else {
        return;
    };
    while let Some(left) = carrier.sounding_left() {
        match tokio::time::timeout(left, pieces.recv()).await {
            Ok(Some(Piece::Data(bytes))) => carrier.consumed(number, bytes.len()),
            _ => break,
        }
    }
    carrier.send(number, &Rate::encode(carrier.end_sounding())).await;
    carrier.end(number);
    while let Ok(Some(Piece::Data(bytes))) = tokio::time::timeout(REST, pieces.recv()).await {
        carrier.consumed(number, bytes.len());
    }
    carrier.forget(number);
}

/// Begins a stream that the other gateway asks for, for one of our processes.
pub(crate) fn begin(gateway: &Rc<Gateway>, carrier: &Rc<Carrier>, asked: StreamRequest) {
    tokio::task::spawn_local(serve(gateway.clone(), carrier.clone(), asked));
}

async fn serve(gateway: Rc<Gateway>, carrier: Rc<Carrier>, StreamRequest { number, ends, wish }: StreamRequest) {
    if wish == WISH_MEASURE {
        return sound(&carrier, number).await;
    }
    match reach(&gateway, &carrier, ends, wish).await {
        Ok(stream) if is_stream(wish) => {
            carrier.accept(number);
            pump(&carrier, number, stream).await;
        }
        // It has been told; the stream was only for that.
        Ok(_) => carrier.accept(number),
        Err(why) => carrier.refuse(number, &why),
    }
}

async fn reach(gateway: &Rc<Gateway>, carrier: &Carrier, ends: Ends, wish: u8) -> Result<TcpStream, String> {
    let Ends { from, to } = ends;
    gateway.places.wait().await;
    let of_theirs = gateway.places.area(from);
    if of_theirs.is_some_and(|area| area != carrier.area) {
        if let Some(neighbour) = gateway.neighbour(carrier.area) {
            neighbour.distrust(gateway, from);
        }
    }
    if gateway.places.area(to) != Some(gateway.area) || of_theirs != Some(carrier.area) {
        return Err(format!("rank {to} is not in the local area of this gateway"));
    }
    let addresses = gateway.places.addresses(to);
    let own = gateway.clone();
    let prove = move |mut stream: TcpStream| {
        let gateway = own.clone();
        async move {
            if !is_stream(wish) {
                dial::shake(&mut stream, &gateway.prover, ends, READY).await?;
                let heard = stream.read_u8().await.map_err(|e| e.to_string())?;
                if heard != READY {
                    return Err("it cannot dial".to_owned());
                }
            }
            Ok(stream)
        }
    };
    let found = dial::first(&addresses, prove).await;
    found
        .map(|(_, stream)| stream)
        .map_err(|why| format!("rank {to} cannot be reached from the gateway of its local area: {why}"))
}
