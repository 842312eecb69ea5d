"""Reads from argparse the program's numeric options, and the value of each argument.

A search can then pass these options in the command. The values show the configuration: a default that the
command overrides is not in effect.
"""

import json
import sys

from _unidle_shim.facts import arguments
from _unidle_shim.host.guard import caught
from _unidle_shim.host.notes import write_line
from _unidle_shim.host.patching import put

_MOST = 200
_told = False


def argparse_imported(argparse):
    original = argparse.ArgumentParser.parse_known_args

    def parse_known_args(self, *args, **kwargs):
        parsed = original(self, *args, **kwargs)
        try:
            words = args[0] if args else kwargs.get("args")
            arguments.parsed(argparse, self, words, parsed)
            if not _told and (words is None or list(words) == sys.argv[1:]) and _accepts_options_after(self):
                _tell(argparse, self, parsed[0])
        except BaseException as failure:
            caught(failure)
        return parsed

    put(argparse.ArgumentParser, "parse_known_args", parse_known_args)


def _accepts_options_after(parser):
    """Whether an option after the last word still belongs to this parser."""
    plain = all(action.option_strings or action.nargs is None for action in parser._actions)
    return plain and parser._subparsers is None and "-" in parser.prefix_chars


def _switches_on(argparse, action):
    """Whether the option without a value makes it True."""
    return action.const is True or isinstance(action, getattr(argparse, "BooleanOptionalAction", ()))


def _tell(argparse, parser, namespace):
    global _told
    found, switches = [], []
    for action in parser._actions:
        names = [name for name in action.option_strings if name.startswith("--")]
        value = getattr(namespace, action.dest, None)
        if (
            names
            and type(action) is argparse._StoreAction
            and action.nargs is None
            and type(value) in (int, float)
        ):
            found.append([names[0], str(value)])
        elif names and value is False and action.nargs in (0, "?") and _switches_on(argparse, action):
            switches.append(names[0])
    if found or switches:
        _told = True
        body = {"program": sys.argv[0], "words": sys.argv[1:], "options": found[:_MOST]}
        body["switches"] = switches[:_MOST]
        write_line('"type":"options",' + json.dumps(body)[1:-1])
