// SPDX-License-Identifier: Apache-2.0
//! Who a process is: a throw-away certificate authority per job, certificates, TLS set-up.
//!
//! ```text
//!  coordinator                         process of rank 17
//!    Authority::new(job)                 KeyPair::generate()
//!        |      <--- signing request ---   key.signing_request()      (through its agent)
//!    authority.sign(request, 17, ..)
//!        |      --- certificate, authority's certificate --->  Identity::new(..)
//! ```
//! The private key of the authority stays in the coordinator's memory, that of a process in the
//! process's; neither is ever written or sent. A certificate says one thing: "rank 17 of this job",
//! as the DNS name [`rank_name`]. Whatever else a signing request asks for is ignored.
//!
//! Whether a certificate is valid is judged by the time of the job: the coordinator's clock when the job began, and
//! what has passed since. Setting the clock of a machine changes nothing.
//!
//! Only TLS 1.3 is spoken, both sides show a certificate, and only this job's authority is believed:
//! the certificates of the system play no part. Nothing here uses a process-wide default, so a user's
//! program may use its own TLS library beside it.

#![forbid(unsafe_code)]

mod authority;
mod clock;
#[cfg(test)]
mod handshake_tests;
mod pinned;
mod proof;
mod shown;
mod tls;
mod verifier;

pub use authority::{Authority, IdentityError, KeyPair, MAX_REQUEST, MAX_VALIDITY, SKEW, rank_name};
pub use pinned::{Fingerprint, Pinned, pinned_client};
pub use proof::{Signature, derived, shown_at};
pub use tls::Identity;
