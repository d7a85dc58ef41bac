// SPDX-License-Identifier: Apache-2.0
//! What the coordinator and an agent say to each other, over the standard input and output of ssh.
