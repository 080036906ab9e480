"""The communication matrix of an OTF2 archive with the Python bindings of libotf2: python_otf2.py ANCHOR-FILE"""

import sys
from collections import Counter

import otf2
from otf2.events import MpiIsend, MpiSend

messages, events = Counter(), 0
with otf2.reader.open(sys.argv[1]) as trace:
    for location, event in trace.events:
        events += 1
        if isinstance(event, (MpiSend, MpiIsend)):
            messages[location.name, event.communicator.name, event.receiver] += event.msg_length
print(events, "events,", sum(messages.values()), "bytes")
