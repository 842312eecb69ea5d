"""Parameters of the program's functions."""

import inspect
import sys

if sys.version_info >= (3, 14):
    import annotationlib

    def signature_of(function):
        """inspect.signature(), without names in annotations that only a type checker knows."""
        return inspect.signature(function, annotation_format=annotationlib.Format.FORWARDREF)

else:
    signature_of = inspect.signature
