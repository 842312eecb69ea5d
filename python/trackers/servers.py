"""Servers of trackers, whose addresses are recorded without passwords."""

import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "shim"))

from _unidle_shim.facts.addresses import without_secrets  # noqa: E402

_VARIABLES = ("MLFLOW_TRACKING_URI", "WANDB_BASE_URL")


class Refused(Exception):
    """Nothing is sent; the text says why."""


def address(recorded, variable):
    """The server that the program used; with its password if the variable names the same server with one."""
    if not recorded or recorded.endswith("://"):
        raise Refused("the address of its server was not recorded, because it may contain a password")
    given = os.environ.get(variable, "")
    return given if without_secrets(given) == recorded else recorded


def in_words(failure):
    """One line, without passwords."""
    words = str(failure) if isinstance(failure, Refused) else f"{type(failure).__name__}: {failure}"
    for variable in _VARIABLES:
        given = os.environ.get(variable)
        if given:
            words = words.replace(given, without_secrets(given))
    return words.strip().partition("\n")[0]
