// SPDX-License-Identifier: Apache-2.0
//! The machine that executes plans: collective operations as steps.

pub(crate) mod ending;
pub(crate) mod execution;
pub(crate) mod plan;
pub(crate) mod scratch;
pub(crate) mod staged;

use crate::base::request::CompletedPart;
use crate::groups::state::Groups;
use crate::mismatch::Testimony;
use crate::p2p::Core;
use crate::plans::execution::Execution;
use crate::plans::scratch::Spare;
use crate::vendor::Vendor;
use crate::{EngineError, Request};

/// What plans work with: steps are messages, or taken together by one of two machines.
pub(crate) struct Hands<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) groups: &'a mut Groups,
    pub(crate) vendor: &'a mut Vendor,
}

/// A plan in which a member does not take part.
pub(crate) struct AtOdds {
    request: Request,
    testimony: Testimony,
    /// What the program is told.
    error: EngineError,
}

impl AtOdds {
    /// What is known of that member.
    pub(crate) fn testimony(&self) -> Testimony {
        self.testimony
    }

    /// The plan, and what the program is told.
    pub(crate) fn into_error(self) -> (Request, EngineError) {
        (self.request, self.error)
    }
}

/// A completed step of a plan that only a thread of the user may go on with.
type Postponed = CompletedPart;

/// The machine that executes plans.
pub(crate) struct Plans {
    /// Those that run, by the index of their requests.
    running: Vec<Option<Box<Execution>>>,
    /// Executions for the next operations.
    #[expect(clippy::vec_box, reason = "they move between here and those that run, and are large")]
    pool: Vec<Box<Execution>>,
    /// Of plans that have ended.
    spare: Spare,
    postponed: Vec<Postponed>,
    /// Pairs of processes that use a link of the wide area at the same time.
    sharers: u32,
}

impl Default for Plans {
    fn default() -> Self {
        Self {
            running: Vec::new(),
            pool: Vec::new(),
            spare: Spare::default(),
            postponed: Vec::new(),
            sharers: 1,
        }
    }
}

impl Plans {
    /// Memory of plans that have ended, for what is no plan: see [`in_own_memory`](crate::in_own_memory).
    pub(crate) fn spare(&mut self) -> &mut Spare {
        &mut self.spare
    }
}
