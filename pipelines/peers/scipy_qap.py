"""Solves a quadratic assignment problem with SciPy, for map/external: scipy_qap.py METHOD INPUT SECONDS SEED.

Starts the method (faq or 2opt) from random permutations until the seconds are over and prints the best permutation, from zero.
"""

import sys
import time

import numpy
from scipy.optimize import quadratic_assignment

method, path, seconds, seed = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
numbers = numpy.fromstring(open(path).read(), dtype=float, sep=" ")
size = int(numbers[0])
weights, costs = numbers[1:].reshape(2, size, size)
random = numpy.random.default_rng(seed)
best, placement, longest = None, None, 0.0
end = time.monotonic() + seconds
# The last start has to end in time.
while best is None or time.monotonic() + longest < end:
    begin = time.monotonic()
    options = {"rng": random}
    if method == "faq":
        options["P0"] = "randomized"
    found = quadratic_assignment(weights, costs, method=method, options=options)
    if best is None or found.fun < best:
        best, placement = found.fun, found.col_ind
    longest = max(longest, time.monotonic() - begin)
print(*placement)
