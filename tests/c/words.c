/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that are not UTF-8, as names of files in old encodings are: a program gets back the bytes that it gave, limits count
   these bytes, and errors show them as \xe9.
   ranks: 1 2 */
#include "files.h"
#include <isthmus.h>

static const char latin[] = "d\xe9p\xf4t";

static void infos(void)
{
    char key[MPI_MAX_INFO_KEY], value[MPI_MAX_INFO_VAL], back[MPI_MAX_INFO_VAL + 1];
    int length, flag;
    MPI_Info info, copy;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, latin, latin));
    memset(key, 0xe9, sizeof key);
    key[sizeof key - 1] = 0;
    memset(value, 0xff, sizeof value);
    value[sizeof value - 1] = 0;
    OK(MPI_Info_set(info, key, value));
    /* What stands for single bytes inside the library is text like any other. */
    OK(MPI_Info_set(info, "private", "\xf4\x8f\xa2\x80"));
    OK(MPI_Info_dup(info, &copy));
    OK(MPI_Info_free(&info));
    OK(MPI_Info_get_nthkey(copy, 0, back));
    CHECK(!strcmp(back, latin));
    OK(MPI_Info_get_nthkey(copy, 1, back));
    CHECK(!strcmp(back, key));
    OK(MPI_Info_get_valuelen(copy, latin, &length, &flag));
    CHECK(flag && length == 5);
    OK(MPI_Info_get(copy, latin, 3, back, &flag));
    CHECK(flag && !strcmp(back, "d\xe9p"));
    length = sizeof back;
    OK(MPI_Info_get_string(copy, key, &length, back, &flag));
    CHECK(flag && length == MPI_MAX_INFO_VAL && !strcmp(back, value));
    length = 5;
    OK(MPI_Info_get_string(copy, "private", &length, back, &flag));
    CHECK(flag && length == 5 && !strcmp(back, "\xf4\x8f\xa2\x80"));
    OK(MPI_Info_delete(copy, key));
    OK(MPI_Info_get_nkeys(copy, &length));
    CHECK(length == 2);
    OK(MPI_Info_free(&copy));
}

static void names(void)
{
    char name[200], back[MPI_MAX_OBJECT_NAME];
    int length;
    MPI_Win win;
    MPI_Datatype type;
    memset(name, 0xe9, sizeof name);
    name[sizeof name - 1] = 0;
    OK(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win));
    OK(MPI_Type_dup(MPI_INT, &type));
    OK(MPI_Comm_set_name(MPI_COMM_SELF, name));
    OK(MPI_Type_set_name(type, name));
    OK(MPI_Win_set_name(win, name));
    name[MPI_MAX_OBJECT_NAME - 1] = 0;
    OK(MPI_Comm_get_name(MPI_COMM_SELF, back, &length));
    CHECK(length == MPI_MAX_OBJECT_NAME - 1 && !strcmp(back, name));
    OK(MPI_Type_get_name(type, back, &length));
    CHECK(length == MPI_MAX_OBJECT_NAME - 1 && !strcmp(back, name));
    OK(MPI_Win_get_name(win, back, &length));
    CHECK(length == MPI_MAX_OBJECT_NAME - 1 && !strcmp(back, name));
    OK(MPI_Comm_set_name(MPI_COMM_SELF, "MPI_COMM_SELF"));
    OK(MPI_Type_free(&type));
    OK(MPI_Win_free(&win));
}

static void errors(void)
{
    char text[MPI_MAX_ERROR_STRING];
    int code, length;
    MPI_Info info;
    OK(MPI_Add_error_class(&code));
    OK(MPI_Add_error_string(code, latin));
    OK(MPI_Error_string(code, text, &length));
    CHECK(length == 5 && !strcmp(text, latin));
    OK(MPI_Info_create(&info));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    code = MPI_Info_delete(info, latin);
    CHECK(code != MPI_SUCCESS);
    OK(MPI_Error_string(code, text, &length));
    CHECK(strstr(text, "d\\xe9p\\xf4t"));
    OK(MPI_Info_free(&info));
}

static int same_extent(MPI_Datatype type, MPI_Aint *extent, void *extra)
{
    MPI_Aint lower;
    (void)extra;
    return MPI_Type_get_extent(type, &lower, extent);
}

/* As long as they may be, in bytes of the program. */
static void limits(void)
{
    char name[MPI_MAX_DATAREP_STRING + 1], tag[MPI_MAX_STRINGTAG_LEN + 2], back[MPI_MAX_DATAREP_STRING];
    int size, rank;
    MPI_Comm comm;
    MPI_Group group;
    MPI_File file;
    MPI_Datatype etype, filetype;
    MPI_Offset disp;
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    memset(name, 0xe9, sizeof name);
    name[MPI_MAX_DATAREP_STRING - 1] = 0;
    OK(MPI_Register_datarep(name, NULL, NULL, same_extent, NULL));
    /* They differ in their last byte only. */
    name[MPI_MAX_DATAREP_STRING - 2] = 'a';
    OK(MPI_Register_datarep(name, NULL, NULL, same_extent, NULL));
    OK(MPI_File_open(MPI_COMM_WORLD, file_name(), MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, name, MPI_INFO_NULL));
    OK(MPI_File_get_view(file, &disp, &etype, &filetype, back));
    CHECK(!strcmp(back, name));
    if (rank > 0)
        name[MPI_MAX_DATAREP_STRING - 2] = (char)0xe9;
    ERROR(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, name, MPI_INFO_NULL), size > 1 ? MPI_ERR_NOT_SAME : MPI_SUCCESS);
    OK(MPI_File_close(&file));
    name[MPI_MAX_DATAREP_STRING - 1] = 'a';
    name[MPI_MAX_DATAREP_STRING] = 0;
    ERROR(MPI_Register_datarep(name, NULL, NULL, same_extent, NULL), MPI_ERR_ARG);
    memset(tag, 0xe9, sizeof tag);
    tag[MPI_MAX_STRINGTAG_LEN] = 0;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
    OK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Comm_free(&comm));
    tag[MPI_MAX_STRINGTAG_LEN] = 'a';
    tag[MPI_MAX_STRINGTAG_LEN + 1] = 0;
    ERROR(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm), MPI_ERR_ARG);
    OK(MPI_Group_free(&group));
    isthmus_handler handler;
    tag[ISTHMUS_MAX_NAME] = 0;
    OK(isthmus_handler_register(tag, NULL, NULL, 0, &handler));
    OK(isthmus_handler_unregister(&handler));
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    infos();
    names();
    errors();
    limits();
    OK(MPI_Finalize());
    return 0;
}
