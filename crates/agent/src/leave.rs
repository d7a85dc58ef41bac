// SPDX-License-Identifier: Apache-2.0
//! The end of an agent: nothing of the job stays at the machine. All steps together take less than 5 s. One that was
//! told to leave stays as long as its neighbours need it.

use crate::batch::Batch;
use crate::event::Event;
use crate::{Agent, End};
use isthmus_sched::fork;
use isthmus_wire::grid::FromAgent;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// How long processes have after SIGTERM when the coordinator is lost.
const TERMINATING: Duration = Duration::from_millis(1500);
/// How long a machine's own `mpiexec` may take to see that its processes have ended, and as long again when it is told
/// to end.
const SETTLING: Duration = Duration::from_millis(700);
/// How long the kernel has to end killed processes.
const KILLING: Duration = Duration::from_millis(1000);
/// How long the last output may take.
const PRINTING: Duration = Duration::from_millis(1500);
/// How long agents on nodes may take to leave.
const LEAVING: Duration = Duration::from_millis(1500);
/// How long a submission that is under way may take.
const SUBMITTING: Duration = Duration::from_secs(60);
/// How long a scheduler may take to cancel a job; the coordinator does not wait for it.
const CANCELLING: Duration = Duration::from_secs(30);
/// How long the last message may take.
const SAYING: Duration = Duration::from_millis(500);

pub(crate) async fn leave(mut agent: Agent, end: End, writing: JoinHandle<()>) {
    if end == End::Lost {
        agent.outbox.close_output();
        agent.neighbours.part();
    }
    if let Some(batch) = agent.batch.take() {
        leave_batch(&mut agent, batch).await;
    }
    if let Some(mut subjob) = agent.subjob.take() {
        if end == End::Lost && !subjob.all_ended() {
            subjob.signal(15);
            await_ends(&mut agent, &mut subjob, TERMINATING).await;
        }
        if end == End::Told {
            // Killed at once, it would leave on the machine what it has made there: Open MPI its session directory.
            subjob.kill_processes();
            await_ends(&mut agent, &mut subjob, SETTLING).await;
            if !subjob.all_ended() {
                subjob.signal(15);
                await_ends(&mut agent, &mut subjob, SETTLING).await;
            }
        }
        subjob.signal(9);
        await_ends(&mut agent, &mut subjob, KILLING).await;
        subjob.flush(&agent.outbox);
        fork::kill_strays(&agent.neighbours.pids());
        let deadline = Instant::now() + PRINTING;
        for reader in subjob
            .processes
            .iter_mut()
            .flat_map(crate::processes::Process::take_readers)
        {
            let abort = reader.abort_handle();
            if print_on(&mut agent, reader, deadline).await.is_none() {
                abort.abort();
            }
        }
        // Dropping the subjob removes its directories.
    } else {
        // A subjob that was refused half-way may have begun to start processes.
        fork::kill_strays(&agent.neighbours.pids());
    }
    // The lease of what the processes have left begins now.
    let works = agent.works.take();
    let empty = works.as_ref().is_some_and(|works| {
        let made = works.look();
        let empty = works.is_own() && made.is_none();
        made.into_iter()
            .for_each(|made| agent.outbox.send(&FromAgent::Made(made)));
        empty
    });
    if let Some(workspace) = agent.workspace.take() {
        match empty {
            true => workspace.remove(),
            false => workspace.renew(),
        }
    }
    if end == End::Told {
        await_neighbours(&mut agent).await;
        agent.outbox.send(&FromAgent::Gone);
    }
    drop(agent);
    let _ = tokio::time::timeout(SAYING, writing).await;
}

/// Carries what neighbours and the coordinator say until there is none of them, or no connection.
async fn await_neighbours(agent: &mut Agent) {
    loop {
        tokio::select! {
            () = agent.neighbours.all_gone() => return,
            event = agent.events.recv() => match event {
                Some(Event::FromCoordinator(message)) => agent.handle_coordinator(message),
                Some(Event::CoordinatorLost | Event::LinkLost(_)) | None => return agent.neighbours.part(),
                Some(_) => {}
            },
        }
    }
}

/// Agents on nodes leave first, so that nothing of their output is lost; then the scheduler forgets the job.
async fn leave_batch(agent: &mut Agent, mut batch: Batch) {
    batch.end();
    let began = Instant::now();
    while !batch.is_gone() {
        let limit = if batch.is_submitting() { SUBMITTING } else { LEAVING };
        match timeout_at(began + limit, agent.events.recv()).await {
            Ok(Some(Event::FromCoordinator(message))) => agent.handle_coordinator(message),
            Ok(Some(Event::CoordinatorLost | Event::LinkLost(_))) => agent.outbox.close_output(),
            Ok(Some(Event::Batch(event))) => {
                batch.handle(event);
                batch.end();
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => break,
        }
    }
    let closing = batch.close(Instant::now() + PRINTING, CANCELLING);
    tokio::pin!(closing);
    loop {
        tokio::select! {
            () = &mut closing => return,
            Some(event) = agent.events.recv() => match event {
                Event::FromCoordinator(message) => agent.handle_coordinator(message),
                Event::CoordinatorLost | Event::LinkLost(_) => agent.outbox.close_output(),
                _ => {}
            },
        }
    }
}

async fn await_ends(agent: &mut Agent, subjob: &mut crate::subjob::Subjob, time: Duration) {
    let deadline = Instant::now() + time;
    while !subjob.all_ended() {
        match timeout_at(deadline, agent.events.recv()).await {
            Ok(Some(Event::FromCoordinator(message))) => agent.handle_coordinator(message),
            Ok(Some(Event::CoordinatorLost | Event::LinkLost(_))) => agent.outbox.close_output(),
            Ok(Some(event)) => subjob.handle(event, &agent.outbox, &agent.sender),
            Ok(None) | Err(_) => return,
        }
    }
}

/// Awaits the end of a reader while the coordinator still gives credit for its output.
async fn print_on(agent: &mut Agent, mut reader: JoinHandle<()>, deadline: Instant) -> Option<()> {
    loop {
        tokio::select! {
            _ = &mut reader => return Some(()),
            event = timeout_at(deadline, agent.events.recv()) => match event.ok()?? {
                Event::FromCoordinator(message) => agent.handle_coordinator(message),
                Event::CoordinatorLost | Event::LinkLost(_) => agent.outbox.close_output(),
                _ => {}
            },
        }
    }
}
