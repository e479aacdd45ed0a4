"""What one would write instead of a CountSketch: numba loops and numpy, one thread each, no noise and no checks.

The numba loops: one with the same hash (tables of the same sizes, filled by numpy), one with multiply-shift and one
with a cubic polynomial modulo 2^61 - 1 a row. Numpy takes multiply-shift, `add.at`, and a sort for the median.
"""

from __future__ import annotations

import numba
import numpy as np

P61 = 2**61 - 1


@numba.njit
def mixed_tabulation(key, words, derived, mixed):
    """128 bits: for a row a sign and a bucket."""
    low, high, characters = np.uint64(0), np.uint64(0), np.uint32(0)
    for i in range(8):
        byte = (key >> np.uint64(8 * i)) & np.uint64(255)
        low ^= words[i, byte, 0]
        high ^= words[i, byte, 1]
        characters ^= derived[i, byte]
    for i in range(4):
        byte = (characters >> np.uint32(8 * i)) & np.uint32(255)
        low ^= mixed[i, byte, 0]
        high ^= mixed[i, byte, 1]
    return low, high


@numba.njit
def sign_of(bits):
    return np.int64(1) - np.int64(2) * np.int64(bits & np.uint64(1))


@numba.njit
def update_same(keys, cells, words, derived, mixed):
    depth, mask = cells.shape[0], np.uint64(cells.shape[1] - 1)
    field = np.uint64(np.log2(cells.shape[1]) + 1)
    for key in keys:
        low, high = mixed_tabulation(key, words, derived, mixed)
        for row in range(depth):
            cells[row, (low >> np.uint64(1)) & mask] += sign_of(low)
            low = (low >> field) | (high << (np.uint64(64) - field))
            high >>= field


#: The same for threads: it lets the interpreter lock go.
update_same_unlocked = numba.njit(nogil=True)(update_same.py_func)


@numba.njit
def update_shift(keys, cells, a, b):
    depth, shift = cells.shape[0], np.uint64(63 - np.log2(cells.shape[1]))
    for key in keys:
        for row in range(depth):
            bits = (a[row] * key + b[row]) >> shift
            cells[row, bits >> np.uint64(1)] += sign_of(bits)


@numba.njit
def times_modulo(x, y):
    """The product modulo 2^61 - 1, both below 2^61; by halves of 32 and 29 bits."""
    mask32, p = np.uint64(2**32 - 1), np.uint64(P61)
    x0, x1 = x & mask32, x >> np.uint64(32)
    y0, y1 = y & mask32, y >> np.uint64(32)
    middle = x0 * y1 + x1 * y0 + ((x0 * y0) >> np.uint64(32))
    low = (middle << np.uint64(32)) | ((x0 * y0) & mask32)
    high = x1 * y1 + (middle >> np.uint64(32))
    total = (low & p) + ((high << np.uint64(3)) | (low >> np.uint64(61)))
    return (total & p) + (total >> np.uint64(61))


@numba.njit
def update_cubic(keys, cells, coefficients):
    depth, mask = cells.shape[0], np.uint64(cells.shape[1] - 1)
    for key in keys:
        x = (key & np.uint64(P61)) + (key >> np.uint64(61))
        for row in range(depth):
            bits = coefficients[row, 0]
            for i in range(1, 4):
                bits = times_modulo(bits, x) + coefficients[row, i]
                bits = (bits & np.uint64(P61)) + (bits >> np.uint64(61))
            cells[row, (bits >> np.uint64(1)) & mask] += sign_of(bits)


@numba.njit
def estimate_same(keys, cells, words, derived, mixed):
    """The median of five by comparisons, as there."""
    mask = np.uint64(cells.shape[1] - 1)
    field = np.uint64(np.log2(cells.shape[1]) + 1)
    medians = np.empty(keys.size)
    values = np.empty(5)
    for i in range(keys.size):
        low, high = mixed_tabulation(keys[i], words, derived, mixed)
        for row in range(5):
            values[row] = sign_of(low) * cells[row, (low >> np.uint64(1)) & mask]
            low = (low >> field) | (high << (np.uint64(64) - field))
            high >>= field
        a, b = min(values[0], values[1]), max(values[0], values[1])
        c, d = min(values[2], values[3]), max(values[2], values[3])
        one, other = max(a, c), min(b, d)
        medians[i] = max(min(one, other), min(max(one, other), values[4]))
    return medians


def numpy_places(keys, a, b, width):
    bits = (a[:, None] * keys + b[:, None]) >> np.uint64(64 - width.bit_length())
    return bits >> np.uint64(1), 1 - 2 * (bits & np.uint64(1)).astype(np.int64)


def update_numpy(keys, cells, a, b):
    places, signs = numpy_places(keys, a, b, cells.shape[1])
    for row in range(len(cells)):
        np.add.at(cells[row], places[row], signs[row])


def estimate_numpy(keys, cells, a, b):
    places, signs = numpy_places(keys, a, b, cells.shape[1])
    return np.sort(signs * np.take_along_axis(cells, places.astype(np.int64), axis=1), axis=0)[len(cells) // 2]


class Parameters:
    """Random parameters of the hash functions of `depth` rows."""

    def __init__(self, depth: int, rng: np.random.Generator) -> None:
        def words(*shape: int) -> np.ndarray:
            return rng.integers(0, 2**64, shape, dtype=np.uint64)

        derived = rng.integers(0, 2**32, (8, 256), dtype=np.uint32)
        self.tables = words(8, 256, 2), derived, words(4, 256, 2)
        self.shift = words(depth) | np.uint64(1), words(depth)
        self.cubic = rng.integers(0, P61, (depth, 4), dtype=np.uint64)
