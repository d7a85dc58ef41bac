! ISTHMUS_DESCRIPTORS: choice buffers are C descriptors (TS 29113). ISTHMUS_NATIVE: they are gfortran's own, and it makes copies for some of them.
! ISTHMUS_CHOICE: how a buffer of any type is declared without either.
#if defined(ISTHMUS_DESCRIPTORS)
#define ISTHMUS_ANY_RANK
#define ISTHMUS_BIND(it) bind(C, name=it)
#elif defined(ISTHMUS_NATIVE)
#define ISTHMUS_ANY_RANK
#define ISTHMUS_BIND(it)
#endif
#if !defined(ISTHMUS_CHOICE)
#define ISTHMUS_CHOICE type(*)
#endif

