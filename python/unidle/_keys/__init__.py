"""Keys of cached calls.

`arguments` encodes what a call is made with, `code` the function that is called. `functions` encodes
functions and classes, `reads` finds the names of its module that a function reads, and `parts` is the
encoding.
"""
