/* SPDX-License-Identifier: Apache-2.0
 *
 * The broadcast trees of the papers, made of MPI_Send and MPI_Recv, to be compared with an MPI library's own:
 *
 *   binomial   what MPICH had: the parent of a process is its number (counted from the root) without the lowest set bit
 *   machine    clusters are machines: the root sends to one process of each other machine, the rest is binomial inside
 *   site       clusters are sites, likewise (MagPIe with its two definitions of clusters; PACX-MPI is `machine`)
 *   levels     both: sites, in them machines, in these a binomial tree (MPICH-G2)
 *
 * A reduction goes the same way backwards. Ranks are numbered machine by machine and site by site.
 */
#ifndef TREES_H
#define TREES_H
#include "places.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TREE_CHILDREN = 64, TREE_TAG = 77 };

struct tree {
    int parent, count, child[TREE_CHILDREN];
};

static void tree_add(struct tree *t, int me, int from, int to)
{
    if (from == me && t->count < TREE_CHILDREN)
        t->child[t->count++] = to;
    if (to == me)
        t->parent = from;
}

/* A binomial tree over ranks `member` with the root at place `top`. */
static void tree_binomial(struct tree *t, int me, const int *member, int count, int top)
{
    int bit = 1;
    while (bit < count)
        bit *= 2;
    /* From the greatest distance to the least: the order in which children are served. */
    for (bit /= 2; bit > 0; bit /= 2)
        for (int i = 0; i + bit < count; i++)
            if (i % (2 * bit) == 0)
                tree_add(t, me, member[(top + i) % count], member[(top + i + bit) % count]);
}

/* One process of each cluster gets it from the root directly (`flat`) or by a binomial tree; gives the ranks of my
 * cluster and its top in `member`, `count`, `top`. */
static void tree_level(struct tree *t, int me, int *member, int *count, int *top, const int *cluster, int flat)
{
    static int heads[PLACE_MOST], own[PLACE_MOST];
    int head_count = 0, root = member[*top], root_head = 0, own_count = 0, own_top = 0;
    for (int i = 0; i < *count; i++) {
        if (i == 0 || cluster[member[i]] != cluster[member[i - 1]]) {
            int has_root = cluster[member[i]] == cluster[root];
            if (has_root)
                root_head = head_count;
            heads[head_count++] = has_root ? root : member[i];
        }
        if (cluster[member[i]] == cluster[me]) {
            if (member[i] == heads[head_count - 1])
                own_top = own_count;
            own[own_count++] = member[i];
        }
    }
    if (flat) {
        for (int i = 1; i < head_count; i++)
            tree_add(t, me, root, heads[(root_head + i) % head_count]);
    } else {
        tree_binomial(t, me, heads, head_count, root_head);
    }
    memcpy(member, own, (size_t)own_count * sizeof *own);
    *count = own_count;
    *top = own_top;
}

/* The place of rank `me` in the tree; 0 for a shape that there is not. */
static int tree_make(struct tree *t, const char *shape, int root, int me, int ranks)
{
    static int member[PLACE_MOST];
    int count = ranks, top = root;
    t->parent = -1;
    t->count = 0;
    for (int i = 0; i < ranks; i++)
        member[i] = i;
    if (!strcmp(shape, "machine")) {
        tree_level(t, me, member, &count, &top, place_machine, 1);
    } else if (!strcmp(shape, "site")) {
        tree_level(t, me, member, &count, &top, place_site, 1);
    } else if (!strcmp(shape, "levels")) {
        tree_level(t, me, member, &count, &top, place_site, 1);
        tree_level(t, me, member, &count, &top, place_machine, 0);
    } else if (strcmp(shape, "binomial")) {
        return 0;
    }
    tree_binomial(t, me, member, count, top);
    return 1;
}

static void tree_bcast(const struct tree *t, void *data, int bytes)
{
    if (t->parent >= 0)
        MPI_Recv(data, bytes, MPI_BYTE, t->parent, TREE_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < t->count; i++)
        MPI_Send(data, bytes, MPI_BYTE, t->child[i], TREE_TAG, MPI_COMM_WORLD);
}
#endif
