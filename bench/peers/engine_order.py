"""The order in which the engine's loader delivers samples (src/unidle/data/shuffle.cpp), for programs that
train on the same batches as the engine."""

from peptide_ensemble import WORD, mix64

GOLDEN = 0x9E3779B97F4A7C15
ROUNDS = 8


def hash_words(*words):
    state = 0x243F6A8885A308D3
    for word in words:
        state = mix64(((state ^ mix64((word + GOLDEN) & WORD)) + GOLDEN) & WORD)
    return state


def permute(key, value, bits):
    low_bits = bits // 2
    low, high = value & ((1 << low_bits) - 1), value >> low_bits
    for number in range(0, ROUNDS, 2):
        mixed = mix64((key + GOLDEN * (number + 1) + mix64(low + number)) & WORD)
        high ^= mixed & ((1 << (bits - low_bits)) - 1)
        mixed = mix64((key + GOLDEN * (number + 2) + mix64(high + number + 1)) & WORD)
        low ^= mixed & ((1 << low_bits) - 1)
    return high << low_bits | low


def shuffled_index(seed, epoch, index, count):
    """Returns the index in the data of the item at that position of the epoch's order."""
    if count <= 1:
        return 0
    bits = max(2, (count - 1).bit_length())
    key = hash_words(seed, epoch, count)
    while True:
        index = permute(key, index, bits)
        if index < count:
            return index
