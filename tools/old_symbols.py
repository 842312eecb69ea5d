"""Makes the ELF files of a folder run with older versions of glibc and libstdc++: `old_symbols.py ROOT`

The linker takes the newest version of each function that the building machine has. For most functions this
machine has the older versions as well, which mean the same, and the file asks for the newest of those that
LIMITS allows. Functions that have none lose their version: our own programs and libraries in the folder
define them (src/unidle/base/old_glibc), or the libstdc++ that is there.

The libraries of others get names of their own ("lib" becomes "uni"): a program that loads one of ours must
not get them in place of its own. And no file looks for libraries in folders of the building machine.

Everything is changed in place, so nothing moves.

--check ROOT only lists what asks for more than LIMITS. --self-test proves that it can fail.
"""

import functools
import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

# manylinux_2_28: glibc of RHEL 8, libstdc++ of GCC 8.
LIMITS = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 25), "CXXABI": (1, 3, 11)}
SHARED = {"libstdc++.so.6"}  # programs share it with libtorch
DYNAMIC, NEEDED_VERSIONS, DEFINED_VERSIONS, SYMBOL_VERSIONS = 6, 0x6FFFFFFE, 0x6FFFFFFD, 0x6FFFFFFF
NEEDED, SONAME, RPATH, RUNPATH, NEEDED_VERSIONS_COUNT = 1, 14, 15, 29, 0x6FFFFFFF
HIDDEN = 0x8000
UNVERSIONED = 1


def too_new(version):
    family, _, number = version.partition("_")
    limit = LIMITS.get(family)
    return limit is not None and re.fullmatch(r"[0-9.]+", number) and numbers(version) > limit


def numbers(version):
    return tuple(int(part) for part in version.partition("_")[2].split("."))


def hash_of(name):
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value


class Elf:
    """The dynamic section, symbols and versions of a 64-bit little-endian file."""

    def __init__(self, path):
        self.path = Path(path)
        self.data = bytearray(self.path.read_bytes())
        offset = self.unpack("<Q", 40)[0]
        size, count = self.unpack("<HH", 58)
        self.sections = {}
        headers = [self.unpack("<IIQQQQIIQQ", offset + i * size) for i in range(count)]
        for i, header in enumerate(headers):
            self.sections.setdefault(header[1], (header, offset + i * size))
        (self.dynamic_header, _) = self.sections[DYNAMIC]
        self.strings_at, self.strings_size = headers[self.dynamic_header[6]][4:6]
        self.needs = self._read_needs()

    def unpack(self, form, at):
        return struct.unpack_from(form, self.data, at)

    def text(self, offset):
        start = self.strings_at + offset
        return self.data[start : self.data.index(0, start)].decode()

    def set_text(self, offset, text):
        """Over the string that is there."""
        old = self.text(offset)
        if len(text) > len(old):
            raise ValueError(f"{self.path}: no space for {text} in {old}")
        start = self.strings_at + offset
        self.data[start : start + len(old)] = text.encode().ljust(len(old), b"\0")

    def find_text(self, text):
        at = self.data.find(
            b"\0" + text.encode() + b"\0", self.strings_at, self.strings_at + self.strings_size
        )
        return None if at < 0 else at + 1 - self.strings_at

    def dynamic(self):
        """(offset in the file, tag, value) of each entry."""
        at, size = self.dynamic_header[4:6]
        for entry in range(at, at + size, 16):
            tag, value = self.unpack("<QQ", entry)
            yield entry, tag, value

    def _read_needs(self):
        """[[offset of the library's name, [[flags, index, offset of the version's name], ...]], ...]"""
        needs = []
        if NEEDED_VERSIONS in self.sections:
            header, _ = self.sections[NEEDED_VERSIONS]
            at = header[4]
            for _ in range(header[7]):
                _, count, library, first, following = self.unpack("<HHIII", at)
                versions, entry = [], at + first
                for _ in range(count):
                    _, flags, index, name, step = self.unpack("<IHHII", entry)
                    versions.append([flags, index, name])
                    entry += step
                needs.append([library, versions])
                at += following
        return needs

    def write_needs(self):
        header, header_at = self.sections[NEEDED_VERSIONS]
        needs = [need for need in self.needs if need[1]]
        out = b""
        for i, (library, versions) in enumerate(needs):
            following = 16 * (1 + len(versions)) if i + 1 < len(needs) else 0
            out += struct.pack("<HHIII", 1, len(versions), library, 16, following)
            for j, (flags, index, name) in enumerate(versions):
                step = 16 if j + 1 < len(versions) else 0
                out += struct.pack("<IHHII", hash_of(self.text(name)), flags, index, name, step)
        assert len(out) <= header[5]
        self.data[header[4] : header[4] + header[5]] = out.ljust(header[5], b"\0")
        struct.pack_into("<I", self.data, header_at + 44, len(needs))
        for at, tag, _ in self.dynamic():
            if tag == NEEDED_VERSIONS_COUNT:
                struct.pack_into("<Q", self.data, at + 8, len(needs))

    def symbols(self):
        """(name, is defined, offset of its version, the version's index and whether it is hidden)"""
        if SYMBOL_VERSIONS not in self.sections:
            return
        header, _ = self.sections[SYMBOL_VERSIONS]
        symbols_at = self.sections[11][0][4]
        for i in range(1, header[5] // 2):
            name, _, _, section = self.unpack("<IBBH", symbols_at + 24 * i)
            version = self.unpack("<H", header[4] + 2 * i)[0]
            yield self.text(name), section != 0, header[4] + 2 * i, version & ~HIDDEN

    def defined_versions(self):
        """The names of the versions that the file defines, by their index."""
        versions = {}
        if DEFINED_VERSIONS in self.sections:
            header, _ = self.sections[DEFINED_VERSIONS]
            at = header[4]
            for _ in range(header[7]):
                _, _, index, _, _, first, following = self.unpack("<HHHHIII", at)
                versions[index & ~HIDDEN] = self.text(self.unpack("<I", at + first)[0])
                at += following
        return versions

    def needed_versions(self):
        return {index: self.text(name) for _, versions in self.needs for _, index, name in versions}


@functools.lru_cache(maxsize=None)
def library_path(name):
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        if line.split()[:1] == [name] and "64" in line:
            return line.split()[-1]
    raise ValueError(f"{name} is not on this machine")


@functools.lru_cache(maxsize=None)
def versions_in(name):
    """The versions of each function in a library of this machine."""
    library = Elf(library_path(name))
    defined = library.defined_versions()
    found = {}
    for symbol, is_defined, _, index in library.symbols():
        if is_defined and index in defined:
            found.setdefault(symbol, set()).add(defined[index])
    return found


def older(symbol, version, library):
    family = version.partition("_")[0] + "_"
    known = versions_in(library).get(symbol, ())
    allowed = [v for v in known if v.startswith(family) and re.fullmatch(r"[0-9.]+", v[len(family) :])]
    return max((v for v in allowed if not too_new(v)), key=numbers, default=None)


def lower(elf):
    """Returns the symbols that have no version any more."""
    unversioned = set()
    by_index = {}
    for symbol, _, at, index in elf.symbols():
        by_index.setdefault(index, []).append((symbol, at))
    for need in elf.needs:
        library, versions = elf.text(need[0]), need[1]
        names = {elf.text(name): index for _, index, name in versions}
        for entry in [each for each in versions if too_new(elf.text(each[2]))]:
            replaced = False
            version = elf.text(entry[2])
            for symbol, at in by_index.get(entry[1], ()):
                wanted = older(symbol, version, library)
                if wanted is None:
                    unversioned.add(symbol)
                    index = UNVERSIONED
                else:
                    if wanted not in names:
                        if replaced:
                            raise ValueError(
                                f"{elf.path}: {symbol} needs {wanted}, for which there is no entry"
                            )
                        replaced = True
                        place = elf.find_text(wanted)
                        if place is None:
                            place = entry[2]
                            elf.set_text(place, wanted)
                        entry[2] = place
                        names[wanted] = entry[1]
                    index = names[wanted]
                hidden = elf.unpack("<H", at)[0] & HIDDEN
                struct.pack_into("<H", elf.data, at, index | hidden)
            if not replaced:
                versions.remove(entry)
    if elf.needs:
        elf.write_needs()
    return unversioned


def rename(elf, names):
    places = {value for _, tag, value in elf.dynamic() if tag in (NEEDED, SONAME)}
    places |= {library for library, _ in elf.needs}
    for place in places:
        new = names.get(elf.text(place))
        if new:
            elf.set_text(place, new)


def drop_foreign_paths(elf):
    for _, tag, value in elf.dynamic():
        if tag in (RPATH, RUNPATH):
            kept = [folder for folder in elf.text(value).split(":") if folder.startswith("$ORIGIN")]
            elf.set_text(value, ":".join(dict.fromkeys(kept)) or "$ORIGIN")


def elf_files(root):
    for path in sorted(Path(root).rglob("*")):
        if path.is_file() and not path.is_symlink():
            with open(path, "rb") as file:
                if file.read(6) == b"\x7fELF\x02\x01":
                    yield path


def is_ours(path):
    return "unidle" in path.name


def convert(root):
    files = [Elf(path) for path in elf_files(root)]
    names = {}
    for elf in files:
        if not is_ours(elf.path) and elf.path.name not in SHARED:
            names[elf.path.name] = elf.path.name.replace("lib", "uni", 1)
    unversioned = {}
    for elf in files:
        for symbol in lower(elf):
            unversioned.setdefault(symbol, elf.path.name)
        rename(elf, names)
        drop_foreign_paths(elf)
    defined = {symbol for elf in files for symbol, is_defined, _, _ in elf.symbols() if is_defined}
    missing = [f"{name} (in {file})" for name, file in sorted(unversioned.items()) if name not in defined]
    if missing:
        raise ValueError("nothing in the folder defines " + ", ".join(missing))
    for elf in files:
        mode = elf.path.stat().st_mode
        elf.path.unlink()  # it may be a link to a file of the build
        elf.path = elf.path.with_name(names.get(elf.path.name, elf.path.name))
        elf.path.write_bytes(elf.data)
        os.chmod(elf.path, mode)


def faults(root):
    for path in elf_files(root):
        elf = Elf(path)
        for version in sorted(elf.needed_versions().values()):
            if too_new(version):
                yield f"{path}: asks for {version}"
        for _, tag, value in elf.dynamic():
            if tag in (RPATH, RUNPATH) and any(
                not f.startswith("$ORIGIN") for f in elf.text(value).split(":")
            ):
                yield f"{path}: looks for libraries in {elf.text(value)}"


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "a.c")
        source.write_text("#include <math.h>\n#include <dlfcn.h>\n"
                          "double f(double x) { return exp(x) + (dlopen(0, 1) != 0); }\n")  # fmt: skip
        library = Path(folder, "root", "libunidle_a.so")
        library.parent.mkdir()
        command = ["cc", "-shared", "-fPIC", "-Wl,-rpath,/somewhere", str(source), "-o", str(library), "-lm"]
        subprocess.run(command, check=True)
        before = list(faults(library.parent))
        assert any("GLIBC_2.29" in fault for fault in before), before
        assert any("/somewhere" in fault for fault in before), before
        convert(library.parent)
        assert not list(faults(library.parent)), list(faults(library.parent))
        call = "import ctypes, sys; f = ctypes.CDLL(sys.argv[1]).f; f.restype = ctypes.c_double; " \
               "f.argtypes = [ctypes.c_double]; assert abs(f(1) - 3.718281828) < 1e-6, f(1)"  # fmt: skip
        subprocess.run([sys.executable, "-c", call, str(library)], check=True)
    print("old symbols: the check works")


def main(arguments):
    if arguments == ["--self-test"]:
        self_test()
        return 0
    if arguments[:1] == ["--check"] and len(arguments) == 2:
        found = list(faults(arguments[1]))
        print("\n".join(found), end="\n" if found else "")
        return 1 if found else 0
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        convert(arguments[0])
    except ValueError as error:
        print(f"old symbols: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
