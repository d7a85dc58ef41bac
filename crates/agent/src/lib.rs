// SPDX-License-Identifier: Apache-2.0
//! One per machine: starts, watches and reaps processes.
