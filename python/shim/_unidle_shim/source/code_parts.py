"""The code within code: functions, lambdas, comprehensions, classes."""

import types


def parts_of(code):
    """The code itself first, and all code within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from parts_of(constant)
