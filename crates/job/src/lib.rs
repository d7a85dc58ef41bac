// SPDX-License-Identifier: Apache-2.0
//! From command line, TOML and host files to one Job; co-allocation as a state machine.
