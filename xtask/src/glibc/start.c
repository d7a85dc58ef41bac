/* SPDX-License-Identifier: Apache-2.0 */
/* The start of a program. A C library since 2.34 runs the program's constructors itself, and the compiler's start-up file of such a
   system gives none; an older one runs only what it is given. */
typedef int main_function(int, char **, char **);
typedef void init_function(int, char **, char **);

extern init_function *__init_array_start[] __attribute__((visibility("hidden")));
extern init_function *__init_array_end[] __attribute__((visibility("hidden")));
extern void _init(void) __attribute__((visibility("hidden")));

int old_start(main_function *main, int argc, char **argv, init_function *init, void (*fini)(void), void (*ld_fini)(void), void *stack);
__asm__(".symver old_start,__libc_start_main@GLIBC_2.2.5");

static void constructors(int argc, char **argv, char **environment)
{
    _init();
    for (init_function **next = __init_array_start; next != __init_array_end; next++)
        (*next)(argc, argv, environment);
}

int __libc_start_main(main_function *main, int argc, char **argv, init_function *init, void (*fini)(void), void (*ld_fini)(void),
                      void *stack)
{
    return old_start(main, argc, argv, init ? init : constructors, fini, ld_fini, stack);
}
