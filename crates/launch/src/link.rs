// SPDX-License-Identifier: Apache-2.0
//! One connection to an agent: its two directions, and what carries them.

use isthmus_reach::Failure;
use isthmus_reach::connection::{Client, Connection};
use isthmus_wire::codec::Deframer;
use isthmus_wire::grid::{FromAgent, ToAgent};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};

/// The two directions of a connection to an agent.
pub(crate) struct Link {
    pub(crate) reader: Box<dyn AsyncRead + Unpin + Send>,
    pub(crate) writer: Box<dyn AsyncWrite + Unpin + Send>,
    pub(crate) deframer: Deframer,
    /// The agent has said hello.
    pub(crate) greeted: bool,
}

/// What carries a connection.
pub(crate) enum Carrier {
    /// A process of its own.
    Client(Box<Client>),
    /// The connection of another agent at the same machine.
    Neighbour,
}

impl Link {
    /// What is said over a connection, and the client that carries it.
    pub(crate) fn of(connection: Connection) -> (Self, Carrier) {
        let link = Self {
            reader: Box::new(connection.reader),
            writer: Box::new(connection.writer),
            deframer: Deframer::default(),
            greeted: false,
        };
        (link, Carrier::Client(Box::new(connection.client)))
    }

    /// What is said to an agent beside another one.
    pub(crate) fn beside(stream: DuplexStream) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Self {
            reader: Box::new(reader),
            writer: Box::new(writer),
            deframer: Deframer::default(),
            greeted: false,
        }
    }

    pub(crate) async fn send(&mut self, message: &ToAgent) -> Result<(), Failure> {
        let sent = async {
            self.writer.write_all(&message.encode()).await?;
            self.writer.flush().await
        };
        sent.await.map_err(|_: std::io::Error| Failure::closed())
    }

    pub(crate) async fn receive(&mut self) -> Result<FromAgent, Failure> {
        let message = next(&mut self.reader, &mut self.deframer).await?;
        self.greeted |= matches!(message, FromAgent::Hello(_));
        Ok(message)
    }
}

/// The next message.
pub(crate) async fn next(
    reader: &mut (impl AsyncRead + Unpin + ?Sized),
    deframer: &mut Deframer,
) -> Result<FromAgent, Failure> {
    let nonsense = |error| Failure::new(format!("its agent sent nonsense: {error}"), "");
    let mut buffer = vec![0; 64 << 10];
    loop {
        if let Some(body) = deframer.next_body().map_err(nonsense)? {
            return FromAgent::decode(&body).map_err(nonsense);
        }
        match reader.read(&mut buffer).await {
            Ok(0) | Err(_) => return Err(Failure::closed()),
            Ok(n) => deframer.feed(&buffer[..n]),
        }
    }
}

impl Carrier {
    /// The agent runs.
    pub(crate) fn establish(&mut self) {
        if let Self::Client(client) = self {
            client.establish();
        }
    }

    /// Nothing is to be heard of the agent any more.
    pub(crate) fn give_up(&mut self) {
        if let Self::Client(client) = self {
            client.give_up();
        }
    }

    /// What a client has said by itself.
    pub(crate) fn take_notices(&self) -> String {
        match self {
            Self::Client(client) => client.take_notices(),
            Self::Neighbour => String::new(),
        }
    }

    /// Waits until a client has ended.
    pub(crate) async fn wait(&mut self) {
        if let Self::Client(client) = self {
            client.wait().await;
        }
    }

    /// What a client says when no agent was found that the connection could follow to.
    pub(crate) async fn finds_nobody(&mut self) -> Option<String> {
        match self {
            Self::Client(client) => client.finds_nobody().await,
            Self::Neighbour => None,
        }
    }

    /// Replaces "the connection was closed" by the reason.
    pub(crate) async fn explain(&mut self, failure: Failure) -> Failure {
        match self {
            Self::Client(client) => client.explain(failure).await,
            Self::Neighbour if failure.is_closed() => Failure::new(
                "its agent was lost, or the connection that it shares with another agent there",
                "the machine, the network or the agent went down; the processes there end by themselves",
            )
            .unreached(),
            Self::Neighbour => failure,
        }
    }
}
