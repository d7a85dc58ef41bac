/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that are not UTF-8, as names of files in old encodings are: a program gets back the bytes that it gave, limits count
   these bytes, and errors show them as \xe9.
   ranks: 1 2 */
#include "check.h"

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

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    infos();
    names();
    errors();
    OK(MPI_Finalize());
    return 0;
}
