/* The least that libotf2 can do for a communication matrix: one reader per location, and callbacks for messages sent.
   Nothing is checked, and ranks of communicators are not turned into processes. `otf2_loop ANCHOR-FILE matrix` does just
   that; with `regions` instead, it also adds up the time at each depth of the call stack, because hopmap needs to know
   when a process computes. */
#include <inttypes.h>
#include <otf2/otf2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 1 << 12 };

/* What one location sent to one rank of one communicator. */
struct cell {
  uint64_t messages, bytes;
  uint32_t communicator, receiver;
};

static struct cell cells[CELLS];
static uint64_t *locations, location_count;

static void fail_if(int failed, const char *what) {
  if (failed) {
    fprintf(stderr, "otf2_loop: %s\n", what);
    exit(1);
  }
}

static OTF2_CallbackCode location(void *data, OTF2_LocationRef id, OTF2_StringRef name, OTF2_LocationType kind,
                                  uint64_t events, OTF2_LocationGroupRef group) {
  (void)data, (void)name, (void)kind, (void)events, (void)group;
  locations = realloc(locations, (location_count + 1) * sizeof *locations);
  fail_if(!locations, "out of memory");
  locations[location_count++] = id;
  return OTF2_CALLBACK_SUCCESS;
}

static void count(uint32_t communicator, uint32_t receiver, uint64_t bytes) {
  uint32_t at = (communicator * 31 + receiver) % CELLS, tried = 0;
  while (cells[at].messages && (cells[at].communicator != communicator || cells[at].receiver != receiver)) {
    fail_if(++tried == CELLS, "too many receivers");
    at = (at + 1) % CELLS;
  }
  cells[at].communicator = communicator;
  cells[at].receiver = receiver;
  cells[at].messages++;
  cells[at].bytes += bytes;
}

static OTF2_CallbackCode mpi_send(OTF2_LocationRef sender, OTF2_TimeStamp time, uint64_t position, void *data,
                                  OTF2_AttributeList *attributes, uint32_t receiver, OTF2_CommRef communicator,
                                  uint32_t tag, uint64_t bytes) {
  (void)sender, (void)time, (void)position, (void)data, (void)attributes, (void)tag;
  count(communicator, receiver, bytes);
  return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode mpi_isend(OTF2_LocationRef sender, OTF2_TimeStamp time, uint64_t position, void *data,
                                   OTF2_AttributeList *attributes, uint32_t receiver, OTF2_CommRef communicator,
                                   uint32_t tag, uint64_t bytes, uint64_t request) {
  (void)request;
  return mpi_send(sender, time, position, data, attributes, receiver, communicator, tag, bytes);
}

enum { DEPTHS = 1 << 10 };

static uint64_t depth, since, time_at[DEPTHS];

static void step(OTF2_TimeStamp time, uint64_t to) {
  time_at[depth % DEPTHS] += time - since;
  since = time;
  depth = to;
}

static OTF2_CallbackCode enter(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t position, void *data,
                               OTF2_AttributeList *attributes, OTF2_RegionRef region) {
  (void)location, (void)position, (void)data, (void)attributes, (void)region;
  step(time, depth + 1);
  return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode leave(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t position, void *data,
                               OTF2_AttributeList *attributes, OTF2_RegionRef region) {
  (void)location, (void)position, (void)data, (void)attributes, (void)region;
  step(time, depth - 1);
  return OTF2_CALLBACK_SUCCESS;
}

static void read_global_definitions(OTF2_Reader *reader) {
  OTF2_GlobalDefReader *definitions = OTF2_Reader_GetGlobalDefReader(reader);
  OTF2_GlobalDefReaderCallbacks *callbacks = OTF2_GlobalDefReaderCallbacks_New();
  uint64_t read;
  OTF2_GlobalDefReaderCallbacks_SetLocationCallback(callbacks, location);
  OTF2_Reader_RegisterGlobalDefCallbacks(reader, definitions, callbacks, NULL);
  OTF2_GlobalDefReaderCallbacks_Delete(callbacks);
  fail_if(OTF2_Reader_ReadAllGlobalDefinitions(reader, definitions, &read), "no definitions");
}

static uint64_t read_location(OTF2_Reader *reader, uint64_t id, const OTF2_EvtReaderCallbacks *callbacks) {
  OTF2_DefReader *definitions = OTF2_Reader_GetDefReader(reader, id);
  OTF2_EvtReader *events = OTF2_Reader_GetEvtReader(reader, id);
  uint64_t read = 0;
  if (definitions) {
    OTF2_Reader_ReadAllLocalDefinitions(reader, definitions, &read);
    OTF2_Reader_CloseDefReader(reader, definitions);
  }
  fail_if(!events, "no events");
  OTF2_Reader_RegisterEvtCallbacks(reader, events, callbacks, NULL);
  fail_if(OTF2_Reader_ReadAllLocalEvents(reader, events, &read), "the events cannot be read");
  OTF2_Reader_CloseEvtReader(reader, events);
  return read;
}

int main(int count_of_arguments, char **arguments) {
  uint64_t events = 0, messages = 0, bytes = 0, pairs = 0;
  fail_if(count_of_arguments != 3, "usage: otf2_loop ANCHOR-FILE matrix|regions");
  OTF2_Reader *reader = OTF2_Reader_Open(arguments[1]);
  fail_if(!reader, "no archive");
  OTF2_Reader_SetSerialCollectiveCallbacks(reader);
  read_global_definitions(reader);
  OTF2_EvtReaderCallbacks *callbacks = OTF2_EvtReaderCallbacks_New();
  OTF2_EvtReaderCallbacks_SetMpiSendCallback(callbacks, mpi_send);
  OTF2_EvtReaderCallbacks_SetMpiIsendCallback(callbacks, mpi_isend);
  if (!strcmp(arguments[2], "regions")) {
    OTF2_EvtReaderCallbacks_SetEnterCallback(callbacks, enter);
    OTF2_EvtReaderCallbacks_SetLeaveCallback(callbacks, leave);
  }
  for (uint64_t i = 0; i < location_count; i++) OTF2_Reader_SelectLocation(reader, locations[i]);
  OTF2_Reader_OpenDefFiles(reader);
  OTF2_Reader_OpenEvtFiles(reader);
  for (uint64_t i = 0; i < location_count; i++) {
    events += read_location(reader, locations[i], callbacks);
    for (struct cell *cell = cells; cell < cells + CELLS; cell++) {
      pairs += cell->messages > 0;
      messages += cell->messages;
      bytes += cell->bytes;
      *cell = (struct cell){0};
    }
  }
  OTF2_EvtReaderCallbacks_Delete(callbacks);
  OTF2_Reader_Close(reader);
  printf("%" PRIu64 " events, %" PRIu64 " messages, %" PRIu64 " bytes, %" PRIu64 " pairs\n", events, messages, bytes, pairs);
  return 0;
}
