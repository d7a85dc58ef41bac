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
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TREE_MOST = 4096, TREE_CHILDREN = 64, TREE_TAG = 77 };

/* For each rank the number of its machine and of its site; set by tree_place. */
static int tree_machine[TREE_MOST], tree_site[TREE_MOST], tree_ranks;

struct tree {
    int parent, count, child[TREE_CHILDREN];
};

/* Reads "4,4/4,4": ranks of each machine, sites divided by slashes. The number of ranks, or -1 for a mistake. */
static int tree_place(const char *text)
{
    int machine = 0, site = 0;
    tree_ranks = 0;
    for (;;) {
        char *end;
        long count = strtol(text, &end, 10);
        if (end == text || count < 1 || tree_ranks + count > TREE_MOST)
            return -1;
        for (; count > 0; count--) {
            tree_machine[tree_ranks] = machine;
            tree_site[tree_ranks++] = site;
        }
        if (*end == 0)
            return tree_ranks;
        if (*end != ',' && *end != '/')
            return -1;
        site += *end == '/';
        machine++;
        text = end + 1;
    }
}

/* Whether ranks are where tree_place was told: those of a machine on one host, and those of two machines on two. A launcher that puts all of them on
 * one host would make every operation look quick. Collective. */
static int tree_in_place(int rank)
{
    char own[MPI_MAX_PROCESSOR_NAME] = "", *all = calloc((size_t)tree_ranks, sizeof own);
    int length, right = 1, everywhere = 0;
    if (!all)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Get_processor_name(own, &length);
    MPI_Allgather(own, sizeof own, MPI_CHAR, all, sizeof own, MPI_CHAR, MPI_COMM_WORLD);
    for (int i = 0; i < tree_ranks; i++)
        right = right && !strcmp(own, all + (size_t)i * sizeof own) == (tree_machine[i] == tree_machine[rank]);
    free(all);
    MPI_Allreduce(&right, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return everywhere;
}

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
    static int heads[TREE_MOST], own[TREE_MOST];
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
    static int member[TREE_MOST];
    int count = ranks, top = root;
    t->parent = -1;
    t->count = 0;
    for (int i = 0; i < ranks; i++)
        member[i] = i;
    if (!strcmp(shape, "machine")) {
        tree_level(t, me, member, &count, &top, tree_machine, 1);
    } else if (!strcmp(shape, "site")) {
        tree_level(t, me, member, &count, &top, tree_site, 1);
    } else if (!strcmp(shape, "levels")) {
        tree_level(t, me, member, &count, &top, tree_site, 1);
        tree_level(t, me, member, &count, &top, tree_machine, 0);
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
