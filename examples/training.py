# SPDX-License-Identifier: Apache-2.0
"""Training over several sites with local steps (the idea of DiLoCo, arXiv:2311.08105).

A small network learns a function that another one has made up. Each site trains for H steps on its own: gradients are averaged inside the
site at every step. Then all average how far they have come, and a step with momentum follows that. What crosses the wide area becomes H
times less, and the network learns as well, or nearly.

usage: training.py [H [STEPS]]      H = 1: averages over all sites at every step, as training on one machine does
Needs numpy, and mpi4py built with the mpicc of Isthmus.
"""
import sys
import time

import numpy as np
from mpi4py import MPI

LOCAL, STEPS = ([int(word) for word in sys.argv[1:3]] + [50, 600][len(sys.argv[1:3]):])[:2]
BATCH, WIDTHS = 64, (16, 256, 256, 1)
world = MPI.COMM_WORLD


def own_site():
    """A communicator of the ranks at the same site."""
    info = MPI.Info.Create()
    info.Set("mpi_hw_resource_type", "site")
    site = world.Split_type(MPI.COMM_TYPE_HW_GUIDED, world.rank, info)
    info.Free()
    return site if site != MPI.COMM_NULL else world.Split(0, world.rank)


def layers_of(flat):
    """Weights and biases of each layer, as views of one array: so one operation carries all of them."""
    layers, at = [], 0
    for inner, outer in zip(WIDTHS, WIDTHS[1:]):
        weights = flat[at:at + inner * outer].reshape(inner, outer)
        at += inner * outer
        layers.append((weights, flat[at:at + outer]))
        at += outer
    return layers


LENGTH = sum((inner + 1) * outer for inner, outer in zip(WIDTHS, WIDTHS[1:]))


def random_network(random):
    flat = np.zeros(LENGTH, dtype=np.float32)
    for weights, _ in layers_of(flat):
        weights[:] = random.standard_normal(weights.shape) / np.sqrt(weights.shape[0])
    return flat


def forward(flat, x):
    """The values of all layers; tanh between them."""
    values = [x]
    layers = layers_of(flat)
    for number, (weights, biases) in enumerate(layers):
        x = x @ weights + biases
        values.append(np.tanh(x) if number + 1 < len(layers) else x)
        x = values[-1]
    return values


def gradient(flat, x, wanted):
    values = forward(flat, x)
    result = np.empty_like(flat)
    back = 2 * (values[-1] - wanted) / len(x)
    for (weights, _), (to_weights, to_biases), before, after in list(
            zip(layers_of(flat), layers_of(result), values, values[1:]))[::-1]:
        if after is not values[-1]:
            back = back * (1 - after ** 2)
        to_weights[:] = before.T @ back
        to_biases[:] = back.sum(axis=0)
        back = back @ weights.T
    return result


class Adam:
    """Each site has its own; its moments never travel."""

    def __init__(self):
        self.first = np.zeros(LENGTH, dtype=np.float32)
        self.second = np.zeros(LENGTH, dtype=np.float32)
        self.steps = 0

    def step(self, flat, slope, rate=1e-3):
        self.steps += 1
        self.first += 0.1 * (slope - self.first)
        self.second += 0.001 * (slope ** 2 - self.second)
        first = self.first / (1 - 0.9 ** self.steps)
        second = self.second / (1 - 0.999 ** self.steps)
        flat -= rate * first / (np.sqrt(second) + 1e-8)


def averaged(comm, own):
    total = np.empty_like(own)
    comm.Allreduce(own, total, op=MPI.SUM)
    return total / comm.size


def main():
    site = own_site()
    # All begin with the same network and learn from the same teacher, each rank from examples of its own.
    teacher = random_network(np.random.default_rng(1))
    flat = random_network(np.random.default_rng(2))
    random = np.random.default_rng(100 + world.rank)
    unseen = np.random.default_rng(3).standard_normal((2048, WIDTHS[0])).astype(np.float32)
    answers = forward(teacher, unseen)[-1]
    loss = lambda network: float(np.mean((forward(network, unseen)[-1] - answers) ** 2))
    near = world if LOCAL == 1 else site
    adam, momentum, begun = Adam(), np.zeros_like(flat), flat.copy()
    exchanges, waited, start = 0, 0.0, time.perf_counter()
    for step in range(1, STEPS + 1):
        x = random.standard_normal((BATCH, WIDTHS[0])).astype(np.float32)
        slope = gradient(flat, x, forward(teacher, x)[-1])
        before = time.perf_counter()
        adam.step(flat, averaged(near, slope))
        if LOCAL == 1:
            exchanges += 1
        elif step % LOCAL == 0:
            # How far this site has come since the last exchange; what all have found together is followed with Nesterov's momentum.
            outer = averaged(world, begun - flat)
            momentum = 0.9 * momentum + outer
            flat = begun - 0.7 * (outer + 0.9 * momentum)
            begun = flat.copy()
            exchanges += 1
        waited += time.perf_counter() - before
    took = time.perf_counter() - start
    shown = world.reduce(np.array([took, waited]), op=MPI.SUM, root=0)
    if world.rank == 0:
        took, waited = shown / world.size
        print(f"H {LOCAL}: loss {loss(flat):.4f} after {STEPS} steps, {exchanges} exchanges of {4 * LENGTH} bytes between sites, "
              f"{took:.1f} s, {100 * waited / took:.0f} % of it averaging", flush=True)


main()
