"""Writes Chakra execution traces of a made-up training step: python3 training_16.py FOLDER

16 ranks with 4 GPUs per host: the tensor-parallel groups are the hosts, the data-parallel groups have one rank of each
host. Every layer computes and reduces activations in its tensor-parallel group, forward and backward. Its gradients are
reduced in the data-parallel group while the layer before computes; the optimizer waits for all of them. Operations take
as long as a ring at a constant rate: inside of a host, and between hosts whose GPUs share their link.
"""

import json
import pathlib
import sys

RANKS, PER_HOST, LAYERS = 16, 4, 4
ACTIVATIONS, GRADIENTS = 16 << 20, 96 << 20
FORWARD_US, BACKWARD_US, OPTIMIZER_US = 900, 1800, 400
INSIDE, BETWEEN = 100e9, 50e9 / PER_HOST  # bytes per second of a GPU
COMPUTE, COLLECTIVE, ALL_REDUCE = 4, 7, 0


def varint(value):
    digits = bytearray()
    while value >= 0x80:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    digits.append(value)
    return bytes(digits)


def number(field, value):
    return varint(field << 3) + varint(value)


def block(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


def attribute(name, field, value):
    content = number(field, value) if isinstance(value, int) else block(field, value.encode())
    return block(10, block(1, name.encode()) + content)


class Trace:
    """Messages of `et_def.proto`, each after its length."""

    def __init__(self):
        metadata = block(1, b"0.0.4")
        self.bytes = varint(len(metadata)) + metadata
        self.nodes = 0

    def node(self, name, kind, after, microseconds, attributes=b""):
        self.nodes += 1
        content = number(1, self.nodes) + block(2, name.encode()) + number(3, kind)
        content += b"".join(number(5, node) for node in after) + number(7, microseconds) + attributes
        self.bytes += varint(len(content)) + content
        return self.nodes

    def all_reduce(self, name, after, size, group, rate):
        members = PER_HOST if group.startswith("tp") else RANKS // PER_HOST
        microseconds = round(2 * (members - 1) / members * size / rate * 1e6)
        attributes = attribute("comm_type", 9, ALL_REDUCE) + attribute("comm_size", 9, size)
        return self.node(name, COLLECTIVE, after, microseconds, attributes + attribute("pg_name", 29, group))


def step(rank):
    trace = Trace()
    tensor, data = f"tp{rank // PER_HOST}", f"dp{rank % PER_HOST}"
    last = []
    for layer in range(LAYERS):
        last = [trace.node(f"forward {layer}", COMPUTE, last, FORWARD_US)]
        last = [trace.all_reduce(f"activations {layer}", last, ACTIVATIONS, tensor, INSIDE)]
    gradients = []
    for layer in reversed(range(LAYERS)):
        computed = trace.node(f"backward {layer}", COMPUTE, last, BACKWARD_US)
        last = [trace.all_reduce(f"errors {layer}", [computed], ACTIVATIONS, tensor, INSIDE)]
        gradients.append(trace.all_reduce(f"gradients {layer}", [computed], GRADIENTS, data, BETWEEN))
    trace.node("optimizer", COMPUTE, last + gradients, OPTIMIZER_US)
    return trace.bytes


folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for rank in range(RANKS):
    (folder / f"step.{rank}.et").write_bytes(step(rank))
hosts = range(RANKS // PER_HOST)
groups = {f"tp{host}": [host * PER_HOST + gpu for gpu in range(PER_HOST)] for host in hosts}
groups |= {f"dp{gpu}": [host * PER_HOST + gpu for host in hosts] for gpu in range(PER_HOST)}
(folder / "comm_group.json").write_text(json.dumps(groups, indent=1) + "\n")
