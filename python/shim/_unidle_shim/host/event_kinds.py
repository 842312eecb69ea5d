"""The kinds of events. Written by ./dev format from src/unidle/probe/event_types.h."""

STEP = 1
INPUT = 2
TRANSFER = 3
FORWARD = 4
BACKWARD = 5
OPTIMIZER = 6
SYNC = 7
SAMPLE = 8
STARTUP = 9
VALIDATE = 10
CHECKPOINT = 11
LOSS = 12
LOG = 13
FLUSH = 14
LOADER_START = 15
DEVICE = 16
KERNELS = 17
