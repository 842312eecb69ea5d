"""The ring that the shim writes, byte by byte as docs/probe-format.md has it."""

import os
import shutil
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "shim"))

from _unidle_shim.host import event_kinds, probe  # noqa: E402


@unittest.skipUnless(os.uname().machine == "x86_64", "other machines write through libunidle_probe")
class RingTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        os.environ["UNIDLE_PROBE_DIR"] = self.folder
        self.addCleanup(os.environ.pop, "UNIDLE_PROBE_DIR")

    def bytes(self, name="%d.ring" % os.getpid()):
        with open(os.path.join(self.folder, name), "rb") as file:
            return file.read()

    def test_header_and_events(self):
        ring = probe.open_ring("worker")
        ring.emit(event_kinds.SAMPLE, 11, 22, 33, 44, 55, 6.5, 77)
        content = self.bytes()
        self.assertEqual(
            struct.unpack_from("<QIIQII", content), (0x31474E52444E5500, 1, 64, 512, os.getpid(), 2)
        )
        self.assertEqual(content[40:56].rstrip(b"\0"), b"worker")
        self.assertEqual(struct.unpack_from("<I", content, 56), (1,))
        self.assertEqual(struct.unpack_from("<Q", content, 64), (1,))
        with open("/proc/self/stat") as stat:
            self.assertEqual(
                struct.unpack_from("<Q", content, 200), (int(stat.read().rsplit(")", 1)[1].split()[19]),)
            )
        self.assertEqual(struct.unpack_from("<QQQQQdIIQ", content, 4096), (11, 22, 33, 44, 55, 6.5, 8, 0, 77))
        self.assertEqual(len(content), 4096 + 512 * 64)
        ring.close()
        self.assertEqual(struct.unpack_from("<I", self.bytes(), 56), (2,))

    def test_a_full_ring_drops_and_counts(self):
        ring = probe.open_ring("worker")
        for number in range(512 + 5):
            ring.emit(event_kinds.STEP, number, 0)
        content = self.bytes()
        self.assertEqual(struct.unpack_from("<Q", content, 64), (512,))
        self.assertEqual(struct.unpack_from("<Q", content, 192), (5,))
        self.assertEqual(struct.unpack_from("<Q", content, 4096), (0,))  # nothing was written over

    def test_a_reader_makes_room(self):
        ring = probe.open_ring("worker")
        for number in range(512):
            ring.emit(event_kinds.STEP, number, 0)
        with open(os.path.join(self.folder, "%d.ring" % os.getpid()), "r+b") as file:
            file.seek(128)
            file.write(struct.pack("<Q", 100))
        ring.emit(event_kinds.STEP, 9999, 0)
        content = self.bytes()
        self.assertEqual(struct.unpack_from("<Q", content, 192), (0,))
        self.assertEqual(struct.unpack_from("<Q", content, 4096), (9999,))

    def read_events(self, count, at=0):
        content = self.bytes()
        return [
            struct.unpack_from("<QQQQQdIIQ", content, 4096 + 64 * ((at + index) % 512))
            for index in range(count)
        ]

    def test_events_at_once(self):
        for at in (0, 509):  # in the middle and around the end
            ring = probe.open_ring("worker")
            name = sorted(os.listdir(self.folder))[-1]
            for _number in range(at):
                ring.emit(event_kinds.STEP, 7, 7, 7, 7, 7, 7.0, 7)
            with open(os.path.join(self.folder, name), "r+b") as file:
                file.seek(128)
                file.write(struct.pack("<Q", at))
            ring.emit_all(
                "peplS",
                [
                    1,
                    2,
                    3,
                    event_kinds.INPUT,
                    1,
                    2,
                    3,
                    4,
                    5,
                    6.5,
                    event_kinds.TRANSFER,
                    8,
                    9,
                    3,
                    event_kinds.FORWARD,
                    4,
                    3,
                    5,
                    -0.5,
                    event_kinds.LOSS,
                    1,
                    9,
                    3,
                    32,
                    2,
                    event_kinds.STEP,
                ],
            )
            self.assertEqual(
                self.read_events(5, at),
                [
                    (1, 2, 3, 0, 0, 0.0, event_kinds.INPUT, 0, 0),
                    (1, 2, 3, 4, 5, 6.5, event_kinds.TRANSFER, 0, 0),
                    (8, 9, 3, 0, 0, 0.0, event_kinds.FORWARD, 0, 0),
                    (4, 0, 3, 5, 0, -0.5, event_kinds.LOSS, 0, 0),
                    (1, 9, 3, 32, 2, 0.0, event_kinds.STEP, 0, 0),
                ],
            )
            ring.close()
            os.unlink(os.path.join(self.folder, name))

    def test_a_step_that_does_not_fit_is_left_out_whole(self):
        ring = probe.open_ring("worker")
        for number in range(510):
            ring.emit(event_kinds.STEP, number, 0)
        ring.emit_all("ppp", [1, 2, 3, event_kinds.INPUT] * 3)
        content = self.bytes()
        self.assertEqual(struct.unpack_from("<Q", content, 64), (510,))
        self.assertEqual(struct.unpack_from("<Q", content, 192), (3,))

    def test_a_clock_that_goes_back_makes_no_failure(self):
        ring = probe.open_ring("worker")
        ring.emit(event_kinds.CHECKPOINT, 100, -50)
        ring.emit_all("pS", [100, -7, 0, event_kinds.FORWARD, 100, -60, 0, 4, 1, event_kinds.STEP])
        self.assertEqual(
            [event[:3] for event in self.read_events(3)], [(100, 0, 0), (100, 0, 0), (100, 0, 0)]
        )

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
