"""The communication matrix of an OTF2 archive with Pipit: pipit_matrix.py FOLDER"""

import sys

import pipit

if __name__ == "__main__":
    trace = pipit.Trace.from_otf2(sys.argv[1], num_processes=1)
    print(len(trace.events), "events,", int(trace.comm_matrix().sum()), "bytes")
