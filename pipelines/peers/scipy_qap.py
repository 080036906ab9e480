"""Solves a quadratic assignment problem with SciPy, for map/external: scipy_qap.py METHOD INPUT SECONDS SEED.

Starts the method (faq or 2opt) from random permutations until the seconds are over and prints the best permutation, from zero.
"""

import signal
import sys
import time

begin = time.monotonic()
import numpy
from scipy.optimize import quadratic_assignment


class TimeIsOver(Exception):
    pass


def stop(*_):
    raise TimeIsOver


method, path, seconds, seed = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
numbers = numpy.fromstring(open(path).read(), dtype=float, sep=" ")
size = int(numbers[0])
weights, costs = numbers[1:].reshape(2, size, size)
random = numpy.random.default_rng(seed)
options = {"rng": random, "P0": "randomized"} if method == "faq" else {"rng": random}
best = quadratic_assignment(weights, costs, method=method, options=options)
signal.signal(signal.SIGALRM, stop)
try:
    # The start that is cut short is lost.
    signal.setitimer(signal.ITIMER_REAL, max(begin + seconds - time.monotonic(), 1e-6))
    while True:
        found = quadratic_assignment(weights, costs, method=method, options=options)
        best = min(best, found, key=lambda found: found.fun)
except TimeIsOver:
    print(*best.col_ind)
