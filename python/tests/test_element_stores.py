"""Elements that code assigns: by which names it reaches their container, and whether it made that itself."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

from _unidle_shim.source import element_stores  # noqa: E402

make = use = None
BUFFER = []

# Functions whose container is not theirs: the names by which they reach it. Each stores once.
ELSEWHERE = """
def index(self, i): self.buffer[i] = 1                                # buffer
def rows(self, n, x): self.buffer[:n, :] = x                          # buffer
def part(self, i, j, x): self.buffer[i:j] = x                         # buffer
def constant_part(self, x): self.buffer[0:2] = x                      # buffer
def adds(self, n, x): self.buffer[n] += x                             # buffer
def adds_part(self, n, m, x): self.buffer[n:m] += use(x, 1)           # buffer
def deletes(self, n): del self.inner.buffer[n]                        # inner buffer
def nested(self, n): self.inner[n].buffer[3] = use(n, key=1)          # inner buffer
def of_module(i): BUFFER[i] = 3                                       # BUFFER
def one_of_two(self, i): (self.one if i else self.two)[0] = 1         # one two
def key_of_two(self, i): self.buffer[1 if i else 2] = 1               # buffer
def given(picture): picture[..., ::-1] = 0                            #
def elements(self):
    for each in self.rows: each[0] = 1                                # rows
def another_name(self, i):
    part = self.buffer[1:]; part[:i] = i                              # buffer
def sometimes(self, i):
    part = other = make()
    if i: part = self.buffer
    part[:i] = i                                                      # buffer
def keyword(*, into): into[0] = 1                                     #
def unpacked(self):
    a, b, c = self.three
    c[0] = 1                                                          # three
"""

# Each only stores into what it made.
OWN = """
def array(p): x = make(3); x[p] = 1
def array_of_a_call(p, mask):
    x = make(use.open(p)); x[mask, :] += use(p, key=1); x[..., 0] = 0; x[1:p] = 2; del x[0]
def unpacked(p):
    x, y, z = make(p); x[0] = 1; y[0] = 2; z[0] = 3
def displays(p):
    x = {}; y = [1, 2, 3]; z = x; z["a"] = p; y[p] = 1
    for i in range(3): x[i] = y[i] * 2
def kept_by_a_lambda(p):
    with use:
        x = make(3); x[p] = p if p else 3
        h = lambda: x
    x = x.astype(int); x[0] = 2
def two_names(p):
    a = b = make(3); a[0] = 1; b[1:2] = 3
    if (c := make(p)): c[0] = 1
    make(3)[0] = 1
"""


def functions(text):
    names = {"make": make, "use": use, "BUFFER": BUFFER}
    exec(text, names)
    return {name: each.__code__ for name, each in names.items() if hasattr(each, "__code__")}


class ElementStoresTest(unittest.TestCase):
    def test_containers_that_are_not_its_own(self):
        found, parts = functions(ELSEWHERE), ELSEWHERE.split("\ndef ")[1:]
        self.assertEqual(len(found), len(parts))
        for part in parts:
            name, expected = part.split("(")[0], part.split("#")[1].split()
            with self.subTest(name):
                stores = element_stores.of(found[name])
                self.assertTrue(stores)  # of several ways through the code, each may have one
                self.assertEqual([made for made, _ in stores if made], [])
                self.assertEqual(set().union(*(names for _, names in stores)), set(expected))

    def test_containers_that_it_made(self):
        for name, code in functions(OWN).items():
            with self.subTest(name):
                stores = element_stores.of(code)
                self.assertTrue(stores)
                self.assertEqual([made for made, _ in stores if not made], [])


if __name__ == "__main__":
    unittest.main()
