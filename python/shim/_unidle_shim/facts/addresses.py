"""Addresses of trackers' servers and stores, as a record may hold them."""

import os
import re

_NAMES = (
    "databricks",
    "databricks-uc",
    "uc",
)  # of servers; MLflow takes other words without "://" as folders


def without_secrets(address):
    """The address without user, password and query. An "@" further on may belong to a password as well: then
    only the scheme is left."""
    scheme, mark, rest = address.partition("://")
    if not mark:
        return address
    host, path, query = re.fullmatch(r"([^/?#]*)([^?#]*)(.*)", rest, re.DOTALL).groups()
    if "@" in path + query and (":" in host or "@" in host):
        return scheme + mark
    return scheme + mark + host.rpartition("@")[2] + path


def absolute(address):
    """The same for another working folder: MLflow's relative files and folders are made absolute."""
    scheme, path = re.fullmatch(r"(sqlite[^:/]*:///|file:|)(.*)", address, re.DOTALL).groups()
    if os.path.isabs(path) or "://" in path or path in _NAMES + ("", ":memory:"):
        return address
    return scheme + os.path.abspath(path)
