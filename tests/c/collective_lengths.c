/* SPDX-License-Identifier: Apache-2.0 */
/* One member gives another length than the one who takes expects. Blocks of different lengths go in different ways: through cells of two sizes, in
   messages, straight from memory to memory. Whoever takes the block has an error that names the giver, nobody else has one, nobody waits for ever,
   nothing is written beside the block, and the communicator stays usable.
   ranks: 2 3 */
#include "disagree.h"

static const int lengths[] = {0, 8, 1000, 6000, 20000, 65536, 100000};
enum { LENGTHS = sizeof lengths / sizeof *lengths, ROOM = 100001, FORMS = 3 };
enum { GATHERV, SCATTERV, ALLTOALLV, ALLTOALLW, OPERATIONS };

static char give[MOST * ROOM], take[MOST * ROOM];
static int gives[MOST], takes[MOST], starts[MOST];
static MPI_Datatype types[MOST];

/* Blocking, nonblocking, persistent. */
static int call(int what, int form, MPI_Comm comm)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Info none = MPI_INFO_NULL;
    int code = MPI_SUCCESS;
    switch (what * FORMS + form) {
    case GATHERV * FORMS:
        return MPI_Gatherv(give, gives[0], MPI_BYTE, take, takes, starts, MPI_BYTE, 0, comm);
    case GATHERV * FORMS + 1:
        code = MPI_Igatherv(give, gives[0], MPI_BYTE, take, takes, starts, MPI_BYTE, 0, comm, &request);
        break;
    case GATHERV * FORMS + 2:
        code = MPI_Gatherv_init(give, gives[0], MPI_BYTE, take, takes, starts, MPI_BYTE, 0, comm, none, &request);
        break;
    case SCATTERV * FORMS:
        return MPI_Scatterv(give, gives, starts, MPI_BYTE, take, takes[0], MPI_BYTE, 0, comm);
    case SCATTERV * FORMS + 1:
        code = MPI_Iscatterv(give, gives, starts, MPI_BYTE, take, takes[0], MPI_BYTE, 0, comm, &request);
        break;
    case SCATTERV * FORMS + 2:
        code = MPI_Scatterv_init(give, gives, starts, MPI_BYTE, take, takes[0], MPI_BYTE, 0, comm, none, &request);
        break;
    case ALLTOALLV * FORMS:
        return MPI_Alltoallv(give, gives, starts, MPI_BYTE, take, takes, starts, MPI_BYTE, comm);
    case ALLTOALLV * FORMS + 1:
        code = MPI_Ialltoallv(give, gives, starts, MPI_BYTE, take, takes, starts, MPI_BYTE, comm, &request);
        break;
    case ALLTOALLV * FORMS + 2:
        code = MPI_Alltoallv_init(give, gives, starts, MPI_BYTE, take, takes, starts, MPI_BYTE, comm, none, &request);
        break;
    case ALLTOALLW * FORMS:
        return MPI_Alltoallw(give, gives, starts, types, take, takes, starts, types, comm);
    case ALLTOALLW * FORMS + 1:
        code = MPI_Ialltoallw(give, gives, starts, types, take, takes, starts, types, comm, &request);
        break;
    default:
        code = MPI_Alltoallw_init(give, gives, starts, types, take, takes, starts, types, comm, none, &request);
    }
    if (form == 2)
        OK(MPI_Start(&request));
    if (code == MPI_SUCCESS)
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (form == 2)
        OK(MPI_Request_free(&request));
    return code;
}

/* Whether a block of this length goes in a message, or its giver may wait for one who does not know of it. */
static int is_sent(int what, int length)
{
    return lengths[length] > 4096 && (what == GATHERV || lengths[length] < 32768);
}

/* The last member gives the first one `given` bytes where that expects others; in a scatterv the other way round. All other blocks are right. */
static void one(int what, int form, int expected, int given, int usual, MPI_Comm comm)
{
    int wrong = size - 1, taker = what == SCATTERV ? wrong : 0, class = MPI_SUCCESS, sum = 0;
    for (int r = 0; r < size; r++) {
        gives[r] = takes[r] = lengths[usual];
        starts[r] = r * ROOM;
        types[r] = MPI_BYTE;
    }
    if (what == SCATTERV) {
        if (rank == 0)
            gives[wrong] = lengths[given];
        if (rank == wrong)
            takes[0] = lengths[expected];
    } else {
        if (rank == wrong)
            gives[0] = lengths[given];
        if (rank == 0)
            takes[wrong] = lengths[expected];
    }
    memset(take, 0x55, sizeof take);
    int code = call(what, form, comm);
    OK(MPI_Error_class(code, &class));
    if (rank == taker && expected != given && expected > 0) {
        char text[MPI_MAX_ERROR_STRING], name[32];
        int length;
        CHECK(class == MPI_ERR_TRUNCATE);
        OK(MPI_Error_string(code, text, &length));
        snprintf(name, sizeof name, "rank %d", what == SCATTERV ? 0 : wrong);
        CHECK(strstr(text, name));
    } else {
        OK(code);
    }
    for (int r = 0; r < (what == SCATTERV ? 1 : size); r++)
        for (int i = takes[r]; i < ROOM; i++)
            CHECK(take[r * ROOM + i] == 0x55);
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == size * (size - 1) / 2);
}

int main(void)
{
    MPI_Comm world = begin();
    for (int what = 0; what < OPERATIONS; what++)
        for (int form = 0; form < FORMS; form++)
            for (int expected = 0; expected < LENGTHS; expected++)
                for (int given = 0; given < LENGTHS; given++)
                    for (int usual = 0; usual < LENGTHS; usual += 5)
                        /* Who expects nothing waits for nobody, and has no error; nobody takes what then goes in a message. */
                        if (expected > 0 || !is_sent(what, given))
                            one(what, form, expected, given, usual, world);
    end_with(world, "blocks of other lengths than expected are told of");
    return 0;
}
