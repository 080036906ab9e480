/*
 * The declarations of src/lib.rs and src/callbacks.rs once more, in C and with the widths Rust uses.
 * C refuses to declare a function twice with different types, so this compiles only while both agree.
 */
#include <otf2/otf2.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef int error_code;
typedef unsigned int callback_code;

/* Errors. */
typedef error_code (*error_callback)(void*, const char*, uint64_t, const char*, error_code, const char*, va_list);
error_callback OTF2_Error_RegisterCallback(error_callback, void*);
const char* OTF2_Error_GetDescription(error_code);
/* Rust passes a va_list on as one pointer. */
#if defined(__x86_64__) || defined(__s390x__) || defined(__powerpc__)
_Static_assert(sizeof(va_list) >= sizeof(void*), "a va_list argument is an array, passed as a pointer");
#elif defined(__aarch64__)
_Static_assert(sizeof(va_list) > 2 * sizeof(void*), "a va_list argument is passed by reference");
#else
_Static_assert(sizeof(va_list) == sizeof(void*), "a va_list argument is a pointer");
#endif

/* Locks. */
typedef callback_code (*lock_create)(void*, struct OTF2_LockObject**);
typedef callback_code (*lock_use)(void*, struct OTF2_LockObject*);
typedef struct {
    void (*otf2_release)(void*);
    lock_create otf2_create;
    lock_use otf2_destroy;
    lock_use otf2_lock;
    lock_use otf2_unlock;
} locking_callbacks;
_Static_assert(sizeof(locking_callbacks) == sizeof(OTF2_LockingCallbacks), "size of the locking callbacks");
#define SAME_FIELD(name)                                                                             \
    _Static_assert(offsetof(locking_callbacks, name) == offsetof(OTF2_LockingCallbacks, name), #name); \
    _Static_assert(_Generic(((OTF2_LockingCallbacks*)0)->name, __typeof__(((locking_callbacks*)0)->name): 1, default: 0), #name)
SAME_FIELD(otf2_release);
SAME_FIELD(otf2_create);
SAME_FIELD(otf2_destroy);
SAME_FIELD(otf2_lock);
SAME_FIELD(otf2_unlock);

/* The archive. */
OTF2_Reader* OTF2_Reader_Open(const char*);
error_code OTF2_Reader_Close(OTF2_Reader*);
error_code OTF2_Reader_SetSerialCollectiveCallbacks(OTF2_Reader*);
error_code OTF2_Reader_SetLockingCallbacks(OTF2_Reader*, const OTF2_LockingCallbacks*, void*);
error_code OTF2_Reader_SelectLocation(OTF2_Reader*, uint64_t);
error_code OTF2_Reader_OpenDefFiles(OTF2_Reader*);
error_code OTF2_Reader_OpenEvtFiles(OTF2_Reader*);
OTF2_GlobalDefReader* OTF2_Reader_GetGlobalDefReader(OTF2_Reader*);
error_code OTF2_Reader_CloseGlobalDefReader(OTF2_Reader*, OTF2_GlobalDefReader*);
error_code OTF2_Reader_RegisterGlobalDefCallbacks(OTF2_Reader*, OTF2_GlobalDefReader*, const OTF2_GlobalDefReaderCallbacks*, void*);
error_code OTF2_Reader_ReadAllGlobalDefinitions(OTF2_Reader*, OTF2_GlobalDefReader*, uint64_t*);
OTF2_DefReader* OTF2_Reader_GetDefReader(OTF2_Reader*, uint64_t);
error_code OTF2_Reader_CloseDefReader(OTF2_Reader*, OTF2_DefReader*);
error_code OTF2_Reader_RegisterDefCallbacks(OTF2_Reader*, OTF2_DefReader*, const OTF2_DefReaderCallbacks*, void*);
error_code OTF2_Reader_ReadAllLocalDefinitions(OTF2_Reader*, OTF2_DefReader*, uint64_t*);
OTF2_EvtReader* OTF2_Reader_GetEvtReader(OTF2_Reader*, uint64_t);
error_code OTF2_Reader_CloseEvtReader(OTF2_Reader*, OTF2_EvtReader*);
error_code OTF2_Reader_RegisterEvtCallbacks(OTF2_Reader*, OTF2_EvtReader*, const OTF2_EvtReaderCallbacks*, void*);
error_code OTF2_Reader_ReadLocalEvents(OTF2_Reader*, OTF2_EvtReader*, uint64_t, uint64_t*);

/* Definitions. */
OTF2_GlobalDefReaderCallbacks* OTF2_GlobalDefReaderCallbacks_New(void);
void OTF2_GlobalDefReaderCallbacks_Delete(OTF2_GlobalDefReaderCallbacks*);
OTF2_DefReaderCallbacks* OTF2_DefReaderCallbacks_New(void);
void OTF2_DefReaderCallbacks_Delete(OTF2_DefReaderCallbacks*);
#define GLOBAL(name, ...) \
    error_code OTF2_GlobalDefReaderCallbacks_Set##name##Callback( \
        OTF2_GlobalDefReaderCallbacks*, callback_code (*)(void*, __VA_ARGS__))
GLOBAL(ClockProperties, uint64_t, uint64_t, uint64_t, uint64_t);
GLOBAL(String, uint32_t, const char*);
GLOBAL(SystemTreeNode, uint32_t, uint32_t, uint32_t, uint32_t);
GLOBAL(LocationGroup, uint32_t, uint32_t, uint8_t, uint32_t, uint32_t);
GLOBAL(Location, uint64_t, uint32_t, uint8_t, uint64_t, uint32_t);
GLOBAL(Region, uint32_t, uint32_t, uint32_t, uint32_t, uint8_t, uint8_t, uint32_t, uint32_t, uint32_t, uint32_t);
GLOBAL(Group, uint32_t, uint32_t, uint8_t, uint8_t, uint32_t, uint32_t, const uint64_t*);
GLOBAL(Comm, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
GLOBAL(InterComm, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t);
GLOBAL(CallingContext, uint32_t, uint32_t, uint32_t, uint32_t);
GLOBAL(RmaWin, uint32_t, uint32_t, uint32_t, uint32_t);
error_code OTF2_DefReaderCallbacks_SetClockOffsetCallback(
    OTF2_DefReaderCallbacks*, callback_code (*)(void*, uint64_t, int64_t, double));

/* Events. */
OTF2_EvtReaderCallbacks* OTF2_EvtReaderCallbacks_New(void);
void OTF2_EvtReaderCallbacks_Delete(OTF2_EvtReaderCallbacks*);
#define EVENT(name, ...) \
    error_code OTF2_EvtReaderCallbacks_Set##name##Callback( \
        OTF2_EvtReaderCallbacks*, callback_code (*)(uint64_t, uint64_t, uint64_t, void*, OTF2_AttributeList*, __VA_ARGS__))
EVENT(Enter, uint32_t);
EVENT(Leave, uint32_t);
EVENT(MpiSend, uint32_t, uint32_t, uint32_t, uint64_t);
EVENT(MpiIsend, uint32_t, uint32_t, uint32_t, uint64_t, uint64_t);
EVENT(MpiIsendComplete, uint64_t);
EVENT(MpiIrecvRequest, uint64_t);
EVENT(MpiRequestCancelled, uint64_t);
EVENT(MpiRecv, uint32_t, uint32_t, uint32_t, uint64_t);
EVENT(MpiIrecv, uint32_t, uint32_t, uint32_t, uint64_t, uint64_t);
EVENT(MpiCollectiveEnd, uint8_t, uint32_t, uint32_t, uint64_t, uint64_t);
EVENT(NonBlockingCollectiveRequest, uint64_t);
EVENT(NonBlockingCollectiveComplete, uint8_t, uint32_t, uint32_t, uint64_t, uint64_t, uint64_t);
EVENT(RmaCollectiveEnd, uint8_t, uint32_t, uint32_t, uint32_t, uint64_t, uint64_t);
EVENT(RmaPut, uint32_t, uint32_t, uint64_t, uint64_t);
EVENT(RmaGet, uint32_t, uint32_t, uint64_t, uint64_t);
EVENT(RmaAtomic, uint32_t, uint32_t, uint8_t, uint64_t, uint64_t, uint64_t);
EVENT(CallingContextEnter, uint32_t, uint32_t);
EVENT(CallingContextLeave, uint32_t);

/* The C library. */
int vsnprintf(char*, size_t, const char*, va_list);
