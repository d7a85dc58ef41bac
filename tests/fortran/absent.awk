# SPDX-License-Identifier: Apache-2.0
# Writes a program in Fortran that calls everything that is not there yet: each call gives the error that C gives,
# which names the function, and handles are null.
#
#   isthmus info --functions | awk -F '\t' -v interface=WHICH -f absent.awk - spec/procedures.tsv spec/parameters.tsv
#
# WHICH: mpif.h, mpi or mpi_f08. With mpi_f08 each is called with large counts, too, where there are such.
FILENAME == "-" {
    split($0, word, " ")
    if (word[1] == "later") absent[word[2]]
    next
}
FNR == 1 { next }
FILENAME ~ /procedures/ { large[$1] = $5 == "yes"; next }
!($1 in absent) || $12 !~ (interface == "mpi_f08" ? "f08" : "f90") { next }
$13 == "yes" { next }
!($1 in calls) { order[++procedures] = $1 }
{
    calls[$1] = calls[$1] ", " value($3, $4, $6, $11, 0)
    wide[$1] = wide[$1] ", " value($3, $4, $6, $11, 1)
    if ($4 != "in" && $3 in null) nulls[$1] = nulls[$1] " .and. " variable[$3] " == " null[$3]
}
BEGIN {
    handles = "COMMUNICATOR MPI_Comm MPI_COMM_NULL comm WINDOW MPI_Win MPI_WIN_NULL win INFO MPI_Info MPI_INFO_NULL info GROUP MPI_Group" \
        " MPI_GROUP_NULL group REQUEST MPI_Request MPI_REQUEST_NULL request ERRHANDLER MPI_Errhandler MPI_ERRHANDLER_NULL handler"
    kinds = split(handles, word, " ") / 4
    for (n = 0; n < kinds; n++) {
        type[word[4 * n + 1]] = word[4 * n + 2]
        null[word[4 * n + 1]] = word[4 * n + 3]
        variable[word[4 * n + 1]] = word[4 * n + 4]
    }
    given["DATATYPE"] = "MPI_INTEGER"
    given["OPERATION"] = "MPI_SUM"
    given["COMMUNICATOR"] = "MPI_COMM_SELF"
    given["GROUP"] = "MPI_GROUP_EMPTY"
    given["ERRHANDLER"] = "MPI_ERRORS_RETURN"
    given["EXTRA_STATE"] = given["WINDOW_SIZE"] = given["WIN_ATTACH_SIZE"] = given["RMA_DISPLACEMENT_NNI"] = "0_MPI_ADDRESS_KIND"
}
# What stands for an argument.
function value(kind, direction, length_, callback, is_wide) {
    if (kind == "ERROR_CODE") return length_ == "-" ? "code" : "MPI_ERRCODES_IGNORE"
    if (kind == "STRING_ARRAY") return "texts"
    if (kind == "STRING_2DARRAY") return "table"
    if (kind == "STRING") return direction == "in" ? "'x'" : "text"
    if (kind == "BUFFER") return "buffer"
    if (kind == "C_BUFFER") return interface == "mpi_f08" ? "pointer" : "address"
    if (kind == "LOGICAL") return "flag"
    if (kind == "FUNCTION") return callback ~ /copy/ ? "MPI_WIN_NULL_COPY_FN" : callback ~ /delete/ ? "MPI_WIN_NULL_DELETE_FN" : "handle"
    if (kind in type && direction != "in") return variable[kind]
    if (length_ != "-") return kind == "INFO" ? "[MPI_INFO_NULL]" : "[1]"
    if (kind in given && direction == "in") return given[kind]
    if (kind in null) return null[kind]
    if (kind ~ /ATTRIBUTE|WINDOW_SIZE/) return "address"
    if (kind ~ /^POLYXFER/ && is_wide) return "1_MPI_COUNT_KIND"
    if (kind ~ /^POLYRMA/ && is_wide) return direction == "in" ? "1_MPI_ADDRESS_KIND" : "address"
    return direction == "in" ? "1" : "number"
}
# A call, then what must hold. Long lines are broken at commas.
function one(name, arguments, what) {
    gsub(/, /, ", \\&\n    ", arguments)
    print "  call " name "(" arguments ")"
    print "  call absent(code, .true." nulls[name] ", '" what "')"
}
END {
    print "module judge\n  implicit none\ncontains"
    print "  subroutine absent(code, null, what)\n    use mpi\n    integer, intent(in) :: code\n    logical, intent(in) :: null"
    print "    character(len=*), intent(in) :: what\n    integer :: class, length, ierr\n    character(len=MPI_MAX_ERROR_STRING) :: text"
    print "    call MPI_Error_class(code, class, ierr)\n    call MPI_Error_string(code, text, length, ierr)"
    print "    if (class == MPI_ERR_UNSUPPORTED_OPERATION .and. null .and. index(text, what) > 0) return"
    print "    print *, 'wrong: ', what, class, null, text(1:length)\n    call MPI_Abort(MPI_COMM_WORLD, 1, ierr)"
    print "  end subroutine\n"
    print "  subroutine handle(win, code)"
    if (interface == "mpi_f08") print "    use mpi_f08\n    type(MPI_Win) :: win\n    integer :: code"
    else print "    integer :: win, code"
    print "    code = win" (interface == "mpi_f08" ? "%MPI_VAL" : "") "\n  end subroutine\nend module\n"
    print "program all_absent\n  use judge\n" (interface == "mpif.h" ? "" : "  use " interface "\n") "  use, intrinsic :: iso_c_binding\n  implicit none"
    if (interface == "mpif.h") print "  include 'mpif.h'"
    for (kind in type) print "  " (interface == "mpi_f08" ? "type(" type[kind] ")" : "integer") " :: " variable[kind]
    print "  integer :: code, number, buffer(4)\n  logical :: flag\n  integer(kind=MPI_ADDRESS_KIND) :: address\n  type(c_ptr) :: pointer"
    print "  character(len=MPI_MAX_PORT_NAME) :: text\n  character(len=8) :: texts(2), table(1, 2)\n  texts = ' '\n  table = ' '"
    print "  call MPI_Init(code)\n  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, code)"
    for (n = 1; n <= procedures; n++) {
        name = order[n]
        one(name, substr(calls[name], 3), name)
        if (interface == "mpi_f08" && large[name]) one(name, substr(wide[name], 3), name "_c")
    }
    print "  print '(i0,a)', " procedures ", ' procedures'\n  call MPI_Finalize(code)\nend program"
}
