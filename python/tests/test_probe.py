"""The ring that the shim writes, byte by byte as in docs/probe-format.md."""

import os
import shutil
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

import event_types  # noqa: E402
import package  # noqa: E402
from _unidle_shim.host import event_kinds, probe  # noqa: E402
from _unidle_shim.loop import step_events  # noqa: E402
from _unidle_shim.loop.step_parts import Parts  # noqa: E402


class RingTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        os.environ["UNIDLE_PROBE_DIR"] = self.folder
        self.addCleanup(os.environ.pop, "UNIDLE_PROBE_DIR")
        os.environ["UNIDLE_PROBE_LIBRARY"] = str(package.BUILD / "lib" / "libunidle_probe.so")
        self.addCleanup(os.environ.pop, "UNIDLE_PROBE_LIBRARY")

    def bytes(self, name="%d.ring" % os.getpid()):
        with open(os.path.join(self.folder, name), "rb") as file:
            return file.read()

    def test_header_and_events(self):
        ring = probe.open_ring("worker")
        ring.emit(event_kinds.SAMPLE, 11, 22, 33, 44, 55, 6.5, 77)
        content = self.bytes()
        self.assertEqual(
            struct.unpack_from("<QIIQII", content), (0x31474E52444E5500, 2, 128, 512, os.getpid(), 2)
        )
        self.assertEqual(content[40:56].rstrip(b"\0"), b"worker")
        self.assertEqual(struct.unpack_from("<I", content, 56), (1,))
        self.assertEqual(struct.unpack_from("<Q", content, 64), (1,))
        with open("/proc/self/stat") as stat:
            self.assertEqual(
                struct.unpack_from("<Q", content, 200), (int(stat.read().rsplit(")", 1)[1].split()[19]),)
            )
        self.assertEqual(struct.unpack_from("<QQQQQdIIQ", content, 4096), (11, 22, 33, 44, 55, 6.5, 8, 0, 77))
        self.assertEqual(len(content), 4096 + 512 * 128)
        ring.close()
        self.assertEqual(struct.unpack_from("<I", self.bytes(), 56), (2,))

    def test_a_full_ring_drops_and_counts(self):
        ring = probe.open_ring("worker")
        for number in range(512 + 5):
            ring.emit(event_kinds.SAMPLE, number, 0)
        content = self.bytes()
        self.assertEqual(struct.unpack_from("<Q", content, 64), (512,))
        self.assertEqual(struct.unpack_from("<Q", content, 192), (5,))
        self.assertEqual(struct.unpack_from("<Q", content, 4096), (0,))  # nothing was overwritten

    def test_a_reader_makes_room(self):
        ring = probe.open_ring("worker")
        for number in range(512):
            ring.emit(event_kinds.SAMPLE, number, 0)
        with open(os.path.join(self.folder, "%d.ring" % os.getpid()), "r+b") as file:
            file.seek(128)
            file.write(struct.pack("<Q", 100))
        ring.emit(event_kinds.SAMPLE, 9999, 0)
        content = self.bytes()
        self.assertEqual(struct.unpack_from("<Q", content, 192), (0,))
        self.assertEqual(struct.unpack_from("<Q", content, 4096), (9999,))

    def test_a_step_is_one_event(self):
        parts = Parts(100)
        parts.end, parts.input, parts.forward, parts.backward, parts.optimizer = 190, 11, 12, 13, 14
        parts.loss, parts.losses = -0.5, 1
        ring = probe.open_ring("worker")
        step_events.write(ring, parts, 7, 640, 32, 2)
        parts.losses, parts.forward, parts.rare = 0, 0, True
        parts.transfer, parts.sync, parts.syncs, parts.log, parts.flush = 15, 16, 3, 17, 18
        step_events.write(ring, parts, 8, 672, 32, 2)
        step_events.write_marked(ring, 200, 50, 9, 32, 2, 21)
        step_events.write_marked(ring, 250, 50, 10, 32, 2, None, (15, 16, 3, 17, 18))
        content = self.bytes()
        self.assertEqual(struct.unpack_from("<Q", content, 64), (4,))
        seen = [event_types.step_of(content[at : at + 128]) for at in range(4096, 4096 + 4 * 128, 128)]
        self.assertEqual(
            seen[0], (100, 90, 7, 32, 640, -0.5, 1, 93, 2, None, 11, None, 12, 13, 14, None, 0, 0)
        )
        self.assertEqual(seen[1][3:10], (32, None, None, 1, 59, 2, 3))
        self.assertEqual(seen[1][10:], (11, 15, None, 13, 14, 16, 17, 18))
        self.assertEqual(seen[2], (200, 50, 9, 32, None, None, 1, 1, 2, None, 21, *[None] * 5, 0, 0))
        self.assertEqual(seen[3][7:], (34, 2, 3, None, 15, None, None, None, 16, 17, 18))

    def test_rings_for_other_processors_are_the_same(self):
        parts = Parts(100)
        parts.end, parts.input, parts.loss, parts.losses = 190, 11, -0.5, 1
        written = []
        for number, ring in enumerate((probe.Ring("train"), probe.OrderedRing("train"))):
            step_events.write(ring, parts, 7, 640, 32, 2)
            ring.emit(event_kinds.SAMPLE, 11, 22, 33, 44, 55, 6.5, 77)
            ring.close()
            content = self.bytes(
                "%d.ring" % os.getpid() if number == 0 else "%d.%d.ring" % (os.getpid(), number)
            )
            self.assertEqual(struct.unpack_from("<II", content, 56), (2, 0))
            written.append(content[:32] + content[40:])  # without the time
        self.assertEqual(*written)

    def test_a_clock_that_goes_back_makes_no_failure(self):
        ring, parts = probe.open_ring("worker"), Parts(100)
        parts.end, parts.forward = 40, -7
        ring.emit(event_kinds.CHECKPOINT, 100, -50)
        step_events.write(ring, parts, 1, 0, 4, 1)
        content = self.bytes()
        self.assertEqual(struct.unpack_from("<QQ", content, 4096), (100, 0))
        self.assertEqual(event_types.step_of(content[4096 + 128 :])[:4], (100, 0, 1, 4))

    def test_a_second_ring_gets_another_name(self):
        probe.open_ring("train")
        probe.open_ring("train")
        self.assertTrue(os.path.exists(os.path.join(self.folder, "%d.1.ring" % os.getpid())))

    def test_no_folder_no_ring(self):
        os.environ["UNIDLE_PROBE_DIR"] = os.path.join(self.folder, "gone")
        self.assertIsNone(probe.open_ring("train"))

    def test_no_descriptor_is_kept(self):
        before = os.listdir("/proc/self/fd")
        ring = probe.open_ring("train")
        self.assertEqual(os.listdir("/proc/self/fd"), before)
        ring.close()


if __name__ == "__main__":
    unittest.main()
