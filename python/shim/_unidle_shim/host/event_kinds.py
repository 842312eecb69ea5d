"""The kinds of events. Written by ./dev format from src/unidle/probe/event_types.h."""

STEP = 1
SAMPLE = 8
STARTUP = 9
VALIDATE = 10
CHECKPOINT = 11
LOSS = 12
DEVICE = 16
KERNELS = 17

# What is known of a step.
SEEN_INPUT = 1
SEEN_TRANSFER = 2
SEEN_FORWARD = 4
SEEN_BACKWARD = 8
SEEN_OPTIMIZER = 16
SEEN_SYNC = 32
SEEN_LOSS = 64
