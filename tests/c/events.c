/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the tool interface (section 15.3.8): registration, callbacks, what events carry, dropped events, the end.
   ranks: 1 2 */
#include "check.h"

static int rank, size;
static int unexpected, collectives, errors, freed, nested;
static MPI_Count last, dropped;

static int type(const char *name)
{
    int index;
    OK(MPI_T_event_get_index(name, &index));
    return index;
}

static void on_unexpected(MPI_T_event_instance event, MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data)
{
    unsigned long long bytes;
    int tag, source, me;
    struct {
        unsigned long long bytes;
        int sender, context, source, tag;
    } all;
    MPI_Count at;
    CHECK(data == &unexpected && safety == MPI_T_CB_REQUIRE_NONE && registration != NULL);
    OK(MPI_T_event_get_source(event, &source));
    CHECK(source == 0);
    OK(MPI_T_event_get_timestamp(event, &at));
    CHECK(at >= last);
    last = at;
    OK(MPI_T_event_read(event, 0, &bytes));
    OK(MPI_T_event_read(event, 4, &tag));
    CHECK(MPI_T_event_read(event, 5, &tag) == MPI_T_ERR_INVALID_INDEX);
    OK(MPI_T_event_copy(event, &all));
    CHECK(all.bytes == bytes && all.tag == tag);
    if (tag == 77) {
        CHECK(bytes == 12 && all.source == 0);
        /* Allowed at this level: any MPI call, also one that raises events. */
        OK(MPI_Comm_rank(MPI_COMM_WORLD, &me));
        if (!nested++) {
            OK(MPI_Send(&me, 1, MPI_INT, 0, 78, MPI_COMM_SELF));
            OK(MPI_Recv(&me, 1, MPI_INT, 0, 78, MPI_COMM_SELF, MPI_STATUS_IGNORE));
        }
        ++*(int *)data;
    } else if (tag == 78) {
        nested += 10;
    }
}

static void on_collective(MPI_T_event_instance event, MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data)
{
    (void)event, (void)registration, (void)safety;
    ++*(int *)data;
}

static void on_error(MPI_T_event_instance event, MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data)
{
    int class;
    (void)registration, (void)safety;
    OK(MPI_T_event_read(event, 0, &class));
    CHECK(class == MPI_ERR_RANK);
    ++*(int *)data;
}

static void on_free(MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data)
{
    (void)registration, (void)safety;
    ++*(int *)data;
}

static void on_dropped(MPI_Count count, MPI_T_event_registration registration, int source, MPI_T_cb_safety safety, void *data)
{
    (void)registration, (void)safety, (void)data;
    CHECK(source == 0);
    dropped += count;
}

static MPI_T_event_registration watch(const char *name, MPI_T_event_cb_function callback, void *data)
{
    MPI_T_event_registration registration;
    OK(MPI_T_event_handle_alloc(type(name), NULL, MPI_INFO_NULL, &registration));
    OK(MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, data, callback));
    return registration;
}

static void descriptions(void)
{
    int n, elements, bind, index, length;
    char text[128];
    MPI_Datatype types[8];
    MPI_Aint places[8];
    MPI_T_enum names;
    MPI_Info info;
    MPI_T_source_order order;
    MPI_Count ticks, max, now, later;
    OK(MPI_T_source_get_num(&n));
    CHECK(n == 1);
    length = sizeof text;
    OK(MPI_T_source_get_info(0, text, &length, NULL, NULL, &order, &ticks, &max, &info));
    CHECK(order == MPI_T_SOURCE_ORDERED && ticks == 1000000000 && max > 0);
    OK(MPI_Info_free(&info));
    OK(MPI_T_source_get_timestamp(0, &now));
    OK(MPI_T_source_get_timestamp(0, &later));
    CHECK(later >= now);
    CHECK(MPI_T_source_get_timestamp(1, &now) == MPI_T_ERR_INVALID_INDEX);
    elements = 8;
    OK(MPI_T_event_get_info(type("isthmus_unexpected_message"), NULL, NULL, NULL, types, places, &elements, &names, NULL,
                            NULL, NULL, &bind));
    CHECK(elements == 5 && bind == MPI_T_BIND_NO_OBJECT);
    CHECK(types[0] == MPI_UNSIGNED_LONG_LONG && places[0] == 0 && types[1] == MPI_INT && places[1] == 8);
    length = sizeof text;
    OK(MPI_T_enum_get_item(names, 4, &index, text, &length));
    CHECK(index == 4 && strcmp(text, "tag") == 0);
    CHECK(MPI_T_event_get_index("none", &index) == MPI_T_ERR_INVALID_NAME);
    OK(MPI_T_event_get_num(&n));
    CHECK(MPI_T_event_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_T_ERR_INVALID_INDEX);
}

int main(int argc, char **argv)
{
    int provided, data[3] = {1, 2, 3}, code;
    MPI_Info info;
    MPI_T_event_registration arrivals, starts, ends, raised;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    descriptions();
    /* Registered before MPI_Init. */
    arrivals = watch("isthmus_unexpected_message", on_unexpected, &unexpected);
    OK(MPI_T_event_set_dropped_handler(arrivals, on_dropped));
    OK(MPI_T_event_callback_get_info(arrivals, MPI_T_CB_REQUIRE_NONE, &info));
    OK(MPI_Info_free(&info));
    CHECK(MPI_T_event_callback_get_info(arrivals, MPI_T_CB_REQUIRE_THREAD_SAFE, &info) != MPI_SUCCESS);
    OK(MPI_T_event_handle_get_info(arrivals, &info));
    OK(MPI_Info_free(&info));
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    OK(MPI_Send(data, 3, MPI_INT, 0, 77, MPI_COMM_SELF));
    CHECK(unexpected == 1 && nested == 11);
    OK(MPI_Recv(data, 3, MPI_INT, 0, 77, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    CHECK(unexpected == 1);

    /* More than are kept, inside of one call. */
    MPI_Request requests[2000];
    for (int i = 0; i < 2000; i++)
        OK(MPI_Send_init(data, 1, MPI_INT, 0, 79, MPI_COMM_SELF, &requests[i]));
    OK(MPI_Startall(2000, requests));
    CHECK(dropped > 0 && dropped < 2000);
    for (int i = 0; i < 2000; i++)
        OK(MPI_Recv(data, 1, MPI_INT, 0, 79, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    OK(MPI_Waitall(2000, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 2000; i++)
        OK(MPI_Request_free(&requests[i]));

    starts = watch("isthmus_collective_started", on_collective, &collectives);
    ends = watch("isthmus_collective_ended", on_collective, &collectives);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(collectives == 2);
    OK(MPI_T_event_register_callback(ends, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, NULL));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(collectives == 3);

    raised = watch("isthmus_error_raised", on_error, &errors);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    code = MPI_Send(data, 1, MPI_INT, 5, 0, MPI_COMM_SELF);
    CHECK(code != MPI_SUCCESS && errors == 1);

    OK(MPI_T_event_handle_free(arrivals, &freed, on_free));
    CHECK(freed == 1);
    CHECK(MPI_T_event_handle_free(arrivals, NULL, NULL) == MPI_T_ERR_INVALID_HANDLE);
    OK(MPI_Send(data, 3, MPI_INT, 0, 77, MPI_COMM_SELF));
    OK(MPI_Recv(data, 3, MPI_INT, 0, 77, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    CHECK(unexpected == 1);
    OK(MPI_T_event_handle_free(starts, NULL, NULL));
    OK(MPI_T_event_handle_free(ends, NULL, NULL));
    OK(MPI_T_event_handle_free(raised, NULL, NULL));
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    if (rank == 0)
        printf("events reach their callbacks once, outside of the library, and say what they carry\n");
    return 0;
}
