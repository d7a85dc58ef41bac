! ISTHMUS_DESCRIPTORS: choice buffers are C descriptors (TS 29113). ISTHMUS_CHOICE: how a buffer of any type is declared without them.
#if !defined(ISTHMUS_CHOICE)
#define ISTHMUS_CHOICE type(*)
#endif

