// SPDX-License-Identifier: Apache-2.0
//! Worlds in virtual time and naive oracles for tests.
