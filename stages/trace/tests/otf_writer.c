/* Writes an OTF 1 archive with the library itself: records of all kinds, threads, a process in MPI_COMM_WORLD whose
   number is not its rank, and several processes in one stream.

   gcc otf_writer.c -lopen-trace-format -o otf_writer; ./otf_writer NAME FORMAT LEVEL PROCESSES STREAMS ROUNDS
   FORMAT is 0 (short) or 1 (long), LEVEL that of zlib, 0 for none. */
#include <open-trace-format/otf.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  if (argc != 7) return 2;
  unsigned format = atoi(argv[2]), level = atoi(argv[3]), processes = atoi(argv[4]), streams = atoi(argv[5]);
  unsigned rounds = atoi(argv[6]);
  OTF_FileManager *manager = OTF_FileManager_open(100);
  OTF_Writer *w = OTF_Writer_open(argv[1], streams, manager);
  OTF_Writer_setFormat(w, format);
  OTF_Writer_setCompression(w, level);

  OTF_Writer_writeDefCreator(w, 0, "VampirTrace 5.14.4, or rather a test");
  OTF_Writer_writeDefinitionComment(w, 0, "a comment\nof two lines");
  OTF_Writer_writeDefTimerResolution(w, 0, 1000000);
  uint32_t *members = malloc(processes * sizeof *members), *node = malloc(processes * sizeof *node);
  for (unsigned rank = 0; rank < processes; rank++) {
    char name[40];
    snprintf(name, sizeof name, "Process %u", rank);
    members[rank] = processes - rank; /* rank 0 is the last process */
    OTF_Writer_writeDefProcess(w, 0, rank + 1, name, 0);
    OTF_Writer_writeDefProcess(w, 0, 1 << 20 | (rank + 1), "thread", rank + 1);
  }
  OTF_Writer_writeDefProcessGroup(w, 0, 1000000001, "MPI_COMM_WORLD", processes, members);
  OTF_Writer_writeDefProcessGroup(w, 0, 1000000002, "MPI_COMM_SELF 0", 0, members);
  for (unsigned half = 0; half < 2; half++) {
    unsigned count = 0;
    for (unsigned p = 1; p <= processes; p++)
      if ((p - 1) * 2 / processes == half) node[count++] = p;
    OTF_Writer_writeDefProcessGroup(w, 0, 1000000003 + half, half ? "node1" : "node0", count, node);
  }
  OTF_ATTR_TYPE attribute = OTF_ATTR_IsCommunicator;
  OTF_Writer_writeDefAttributeList(w, 0, 1, 1, &attribute);
  OTF_Writer_writeDefProcessOrGroupAttributes(w, 0, 1000000001, 1);
  OTF_Writer_writeDefFunctionGroup(w, 0, 1, "MPI");
  OTF_Writer_writeDefFunctionGroup(w, 0, 2, "Application");
  OTF_Writer_writeDefFunction(w, 0, 1, "main", 2, 0);
  OTF_Writer_writeDefFunction(w, 0, 2, "MPI_Send", 1, 1);
  OTF_Writer_writeDefCollectiveOperation(w, 0, 1, "MPI_Bcast", OTF_COLLECTIVE_TYPE_ONE2ALL);
  OTF_Writer_writeDefCounterGroup(w, 0, 1, "PAPI");
  OTF_Writer_writeDefCounter(w, 0, 1, "flops", 0, 1, "#");
  OTF_Writer_writeDefCounterAssignments(w, 0, 1, 1, members, 0);
  OTF_Writer_writeDefFileGroup(w, 0, 1, "files");
  OTF_Writer_writeDefFile(w, 0, 1, "a", 1);
  OTF_Writer_writeDefSclFile(w, 0, 1, "ring.c");
  OTF_Writer_writeDefScl(w, 0, 1, 1, 7);
  OTF_Writer_writeDefKeyValue(w, 0, 1, OTF_UINT32, "key", "description");
  OTF_Writer_writeDefTimeRange(w, 0, 1, 1000000, 0);
  OTF_Writer_writeDefProcessSubstitutes(w, 0, 1, 1, members, 0);
  OTF_Writer_writeDefAuxSamplePoint(w, 0, 5, OTF_AUX_SAMPLE_POINT_SNAPSHOT, 0);
  OTF_Writer_writeDefMarker(w, 0, 1, "marker", OTF_MARKER_TYPE_HINT);

  uint64_t t = 1000;
  for (unsigned p = 1; p <= processes; p++) {
    OTF_Writer_writeBeginProcess(w, t, p);
    OTF_Writer_writeEnter(w, t, 1, p, 1);
  }
  for (unsigned round = 0; round < rounds; round++) {
    for (unsigned p = 1; p <= processes; p++) {
      unsigned next = p % processes + 1, last = (p + processes - 2) % processes + 1, thread = 1 << 20 | p;
      t += 10;
      OTF_KeyValueList *list = OTF_KeyValueList_new();
      OTF_KeyValueList_appendUint32(list, 1, round);
      OTF_Writer_writeEnterKV(w, t, 2, p, 0, list);
      OTF_Writer_writeSendMsg(w, t, p, next, 1000000001, 7, 1024 * (round % 3) + p, 0);
      t += 5;
      OTF_Writer_writeRecvMsg(w, t, p, last, 1000000001, 7, 8, 1);
      OTF_Writer_writeLeave(w, t, round % 2 ? 2 : 0, p, 0);
      if (round % 4 == 0) OTF_Writer_writeSendMsg(w, t, thread, last, 1000000002, 1, 3, 1);
      if (round % 8 == 0) {
        OTF_Writer_writeCounter(w, t, p, 1, 42);
        OTF_Writer_writeEventComment(w, t, p, "a comment\nS1L1T1C1\nof three lines");
        OTF_Writer_writeCollectiveOperation(w, t, p, 1, 1000000001, 1, 8, 8, 5, 0);
        OTF_Writer_writeBeginCollectiveOperation(w, t, p, 1, 9, 1000000001, 1, 8, 8, 1);
        OTF_Writer_writeEndCollectiveOperation(w, t, p, 9);
        OTF_Writer_writeFileOperation(w, t, p, 1, 1, OTF_FILEOP_READ, 100, 5, 0);
        OTF_Writer_writeBeginFileOperation(w, t, p, 3, 1);
        OTF_Writer_writeEndFileOperation(w, t, p, 1, 3, 4, OTF_FILEOP_READ, 100, 1);
        OTF_Writer_writeRMAPut(w, t, p, p, next, 1000000001, 1, 64, 0);
        OTF_Writer_writeRMAPutRemoteEnd(w, t, p, p, next, 1000000001, 1, 64, 1);
        OTF_Writer_writeRMAGet(w, t, p, p, next, 1000000001, 2, 64, 0);
        OTF_Writer_writeRMAEnd(w, t, p, next, 1000000001, 2, 1);
        OTF_Writer_writeNoOpKV(w, t, p, list);
      }
      OTF_KeyValueList_close(list);
    }
  }
  t += 100;
  for (unsigned p = 1; p <= processes; p++) {
    OTF_Writer_writeLeave(w, t, 1, p, 1);
    OTF_Writer_writeEndProcess(w, t, p);
  }
  OTF_Writer_close(w);
  OTF_FileManager_close(manager);
  return 0;
}
