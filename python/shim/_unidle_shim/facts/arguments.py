"""Command-line arguments: what argparse returned, and whether the program changed it afterwards."""

import sys
import weakref

_MOST = 200
_PARSES = 20  # a program that parses more often does not parse its command line
# Texts that may be noted: words for number formats and switches. Other texts may be secret, or long.
_WORDS = frozenset(
    "no yes off on none true false auto fp16 bf16 fp32 float16 bfloat16 float32 half float 16 32 64 16-mixed "
    "bf16-mixed 32-true 16-true bf16-true amp_fp16 amp_bf16 apex native default reduce-overhead max-autotune "
    "inductor highest high medium tf32 channels_last contiguous_format nchw nhwc".split()
)

_parses = 0
_left = None  # the words that the last parse did not consume
_found = {}  # dest -> (names, option, text, choices)
_namespaces = []  # weak references


def parsed(argparse, parser, words, returned):
    """Called after parse_known_args of any parser."""
    global _parses, _left
    namespace, left = returned
    if _parses >= _PARSES or type(namespace) is not argparse.Namespace or not _of_command(words):
        return
    _parses += 1
    _left = list(left)
    values = vars(namespace)
    for action in parser._actions:
        if action.option_strings and action.dest in values and len(_found) < _MOST:
            names = [name.lstrip(parser.prefix_chars).replace("-", "_") for name in action.option_strings]
            option = max(action.option_strings, key=len)
            _found[action.dest] = (names, option, _text(values[action.dest], action), _choices(action))
    _namespaces.append(weakref.ref(namespace))


def _of_command(words):
    """Whether these are words of the command, rather than of another source (a file, the environment)."""
    command = sys.argv[1:]
    if words is None:
        return True
    words = list(words)
    if not words:
        return not command or _left == []
    return _in_order(words, command) or (bool(command) and _in_order(command, words))


def _in_order(some, all_of_them):
    rest = iter(all_of_them)
    return all(any(word == other for other in rest) for word in some)


def _text(value, action=None):
    """Returns None for a value that must not be noted."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if type(value) in (int, float):
        return str(value)
    if type(value) is str and (value.lower() in _WORDS or _is_choice(value, action)):
        return value
    return None


def _choices(action):
    """The allowed values of the argument, if they are a short list of numbers and words."""
    choices = action.choices
    if type(choices) not in (list, tuple, range) or not 0 < len(choices) <= 64:
        return None
    texts = [str(one) for one in choices if type(one) in (int, float, str)]
    return texts if len(texts) == len(choices) and max(map(len, texts)) <= 40 else None


def _is_choice(value, action):
    return action is not None and value in (_choices(action) or ())


def note():
    """The parsed arguments and whether they changed later; None if nothing was parsed."""
    if not _found:
        return None
    changed = set()
    for reference in _namespaces:
        namespace = reference()
        values = dict(vars(namespace)) if namespace is not None else {}
        changed.update(
            dest
            for dest, (_, _, text, _) in list(_found.items())
            if dest in values and text is not None and _now(values[dest]) != text
        )
    body = [
        {
            "names": names,
            "option": option,
            "value": text,
            "changed": dest in changed,
            **({"choices": choices} if choices else {}),
        }
        for dest, (names, option, text, choices) in list(_found.items())
    ]
    return {"type": "arguments", "program": sys.argv[0] if sys.argv else "", "arguments": body}


def _now(value):
    return value if type(value) is str else _text(value)
