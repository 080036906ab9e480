/* Copies an OTF2 archive of point-to-point messages with libotf2 alone, in the order in which it reads.

   gcc otf2_copy.c $(pkg-config --cflags --libs otf2) -o otf2_copy; ./otf2_copy ARCHIVE.otf2 FOLDER */
#include <otf2/otf2.h>
#include <stdio.h>
#include <stdlib.h>

static void check(OTF2_ErrorCode code) {
  if (code != OTF2_SUCCESS) exit(1);
}
#define DONE(call) do { check(call); return OTF2_CALLBACK_SUCCESS; } while (0)

static OTF2_FlushType flush(void *data, OTF2_FileType type, OTF2_LocationRef location, void *caller, bool last) {
  return OTF2_FLUSH;
}
static OTF2_FlushCallbacks callbacks = {.otf2_pre_flush = flush};

/* Definitions. */
static uint64_t locations[1 << 16], count;
#define DEF(Name, parameters, ...) \
  static OTF2_CallbackCode def##Name parameters { DONE(OTF2_GlobalDefWriter_Write##Name(w, __VA_ARGS__)); }
DEF(ClockProperties, (void *w, uint64_t ticks, uint64_t offset, uint64_t length, uint64_t real), ticks, offset, length, real)
DEF(String, (void *w, uint32_t id, const char *string), id, string)
DEF(SystemTreeNode, (void *w, uint32_t id, uint32_t name, uint32_t class, uint32_t parent), id, name, class, parent)
DEF(LocationGroup, (void *w, uint32_t id, uint32_t name, uint8_t type, uint32_t node, uint32_t creator), id, name, type, node, creator)
DEF(Location, (void *w, uint64_t id, uint32_t name, uint8_t type, uint64_t events, uint32_t group), id, name, type, events, group)
DEF(Region, (void *w, uint32_t id, uint32_t name, uint32_t canonical, uint32_t description, uint8_t role, uint8_t paradigm,
             uint32_t flags, uint32_t file, uint32_t begin, uint32_t end),
    id, name, canonical, description, role, paradigm, flags, file, begin, end)
DEF(Group, (void *w, uint32_t id, uint32_t name, uint8_t type, uint8_t paradigm, uint32_t flags, uint32_t size, const uint64_t *members),
    id, name, type, paradigm, flags, size, members)
DEF(Comm, (void *w, uint32_t id, uint32_t name, uint32_t group, uint32_t parent, uint32_t flags), id, name, group, parent, flags)
static OTF2_CallbackCode note(void *data, uint64_t id, uint32_t name, uint8_t type, uint64_t events, uint32_t group) {
  locations[count++] = id;
  return OTF2_CALLBACK_SUCCESS;
}

/* Events. */
#define AT OTF2_LocationRef l, OTF2_TimeStamp time, uint64_t position, void *w, OTF2_AttributeList *attributes
#define EVT(Name, parameters, ...) \
  static OTF2_CallbackCode evt##Name parameters { DONE(OTF2_EvtWriter_##Name(w, attributes, time, __VA_ARGS__)); }
EVT(Enter, (AT, uint32_t region), region)
EVT(Leave, (AT, uint32_t region), region)
EVT(MpiSend, (AT, uint32_t peer, uint32_t comm, uint32_t tag, uint64_t bytes), peer, comm, tag, bytes)
EVT(MpiRecv, (AT, uint32_t peer, uint32_t comm, uint32_t tag, uint64_t bytes), peer, comm, tag, bytes)

static void definitions(OTF2_Reader *reader, OTF2_GlobalDefReaderCallbacks *to, void *data) {
  uint64_t read;
  OTF2_GlobalDefReader *from = OTF2_Reader_GetGlobalDefReader(reader);
  check(OTF2_Reader_RegisterGlobalDefCallbacks(reader, from, to, data));
  check(OTF2_Reader_ReadAllGlobalDefinitions(reader, from, &read));
  check(OTF2_Reader_CloseGlobalDefReader(reader, from));
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  uint64_t events, defs, read;
  OTF2_Reader *reader = OTF2_Reader_Open(argv[1]);
  if (!reader) return 1;
  check(OTF2_Reader_SetSerialCollectiveCallbacks(reader));
  check(OTF2_Reader_GetChunkSize(reader, &events, &defs));
  OTF2_GlobalDefReaderCallbacks *notes = OTF2_GlobalDefReaderCallbacks_New();
  check(OTF2_GlobalDefReaderCallbacks_SetLocationCallback(notes, note));
  definitions(reader, notes, NULL);
  for (uint64_t i = 0; i < count; i++) check(OTF2_Reader_SelectLocation(reader, locations[i]));

  OTF2_Archive *archive = OTF2_Archive_Open(argv[2], "traces", OTF2_FILEMODE_WRITE, events, defs, OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
  check(OTF2_Archive_SetFlushCallbacks(archive, &callbacks, NULL));
  check(OTF2_Archive_SetSerialCollectiveCallbacks(archive));
  check(OTF2_Archive_OpenEvtFiles(archive));
  check(OTF2_Reader_OpenEvtFiles(reader));
  OTF2_EvtReaderCallbacks *evt = OTF2_EvtReaderCallbacks_New();
  check(OTF2_EvtReaderCallbacks_SetEnterCallback(evt, evtEnter));
  check(OTF2_EvtReaderCallbacks_SetLeaveCallback(evt, evtLeave));
  check(OTF2_EvtReaderCallbacks_SetMpiSendCallback(evt, evtMpiSend));
  check(OTF2_EvtReaderCallbacks_SetMpiRecvCallback(evt, evtMpiRecv));
  for (uint64_t i = 0; i < count; i++) {
    OTF2_EvtReader *from = OTF2_Reader_GetEvtReader(reader, locations[i]);
    OTF2_EvtWriter *to = OTF2_Archive_GetEvtWriter(archive, locations[i]);
    check(OTF2_Reader_RegisterEvtCallbacks(reader, from, evt, to));
    check(OTF2_Reader_ReadAllLocalEvents(reader, from, &read));
    check(OTF2_Reader_CloseEvtReader(reader, from));
    check(OTF2_Archive_CloseEvtWriter(archive, to));
  }
  check(OTF2_Archive_CloseEvtFiles(archive));
  check(OTF2_Archive_OpenDefFiles(archive));
  for (uint64_t i = 0; i < count; i++)
    check(OTF2_Archive_CloseDefWriter(archive, OTF2_Archive_GetDefWriter(archive, locations[i])));
  check(OTF2_Archive_CloseDefFiles(archive));

  OTF2_GlobalDefReaderCallbacks *def = OTF2_GlobalDefReaderCallbacks_New();
#define SET(Name) check(OTF2_GlobalDefReaderCallbacks_Set##Name##Callback(def, def##Name))
  SET(ClockProperties); SET(String); SET(SystemTreeNode); SET(LocationGroup);
  SET(Location); SET(Region); SET(Group); SET(Comm);
  OTF2_Reader *again = OTF2_Reader_Open(argv[1]);
  check(OTF2_Reader_SetSerialCollectiveCallbacks(again));
  definitions(again, def, OTF2_Archive_GetGlobalDefWriter(archive));
  check(OTF2_Archive_Close(archive));
  return 0;
}
