"""Keys of cached calls.

`arguments` encodes the arguments of a call, `code` the called function. `functions` encodes functions and
classes, `reads` finds the module names that a function reads, and `parts` is the encoding.
"""
