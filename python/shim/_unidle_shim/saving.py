"""In trials, a checkpoint that would take the place of a file outside of the trial's own folder is put aside: the program may write
it to a fixed place, where the user's lies. torch.load finds it again."""

import os

from .hiding import wraps


class Aside:
    """Where what the program writes goes, by what it asks for."""

    def __init__(self, own):
        self.own = os.path.realpath(own)
        self.moved = {}   # real path -> where it is
        self.new = set()  # real paths of files that were not there before

    def place(self, path):
        real = os.path.realpath(os.fspath(path))
        if real in self.moved:
            return self.moved[real]
        if real.startswith(self.own + os.sep) or real in self.new:
            return path
        if not os.path.isfile(real) or not os.path.getsize(real):
            self.new.add(real)
            return path
        folder = os.path.join(self.own, "saved")
        os.makedirs(folder, exist_ok=True)
        self.moved[real] = os.path.join(folder, "%d-%s" % (len(self.moved), os.path.basename(real)))
        return self.moved[real]

    def found(self, path):
        return self.moved.get(os.path.realpath(os.fspath(path)), path)


def _is_path(f):
    return isinstance(f, (str, os.PathLike))


def install(torch, own):
    aside = Aside(own)
    save, load = torch.save, torch.load

    @wraps(save)
    def saved(obj, f, *args, **kwargs):
        return save(obj, aside.place(f) if _is_path(f) else f, *args, **kwargs)

    @wraps(load)
    def loaded(f, *args, **kwargs):
        return load(aside.found(f) if _is_path(f) else f, *args, **kwargs)

    torch.save, torch.load = saved, loaded
    for name in ("replace", "rename"):  # written under another name first, to be whole or not there
        _follow(aside, name)


def _follow(aside, name):
    original = getattr(os, name)

    @wraps(original)
    def moved(src, dst, **kwargs):
        if not kwargs and _is_path(src) and _is_path(dst) and os.path.isfile(src):
            src, dst = aside.found(src), aside.place(dst)
        return original(src, dst, **kwargs)

    setattr(os, name, moved)
