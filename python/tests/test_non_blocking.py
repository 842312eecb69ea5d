"""transfer.non_blocking on the GPU that keeps time: the guarantees of a blocking copy still hold."""

import unittest

import gpu_case

OF_OTHERS = """
import numpy as np, torch

class Pool:
    '''Page-locked memory of another library, which is filled anew as soon as nobody refers to it.'''
    free, blocks = [], []

    def __init__(self, value):
        if not self.free:
            block = np.zeros(32, np.float32)
            self.blocks.append(block)
            assert int(torch.cuda.cudart().cudaHostRegister(block.ctypes.data, block.nbytes, 0)) == 0
            self.free.append(block)
        self.block = self.free.pop()
        self.block[:] = value
        self.__array_interface__ = self.block.__array_interface__

    def __del__(self):
        self.block[:] = -1
        self.free.append(self.block)

net = torch.nn.Linear(8, 1).cuda()
optimizer = torch.optim.SGD(net.parameters(), 0.01)
wrong = 0
for step in range(30):
    x = torch.from_numpy(np.asarray(Pool(step))).to("cuda")
    net(x.view(4, 8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    wrong += not bool((x.cpu() == step).all())
print("wrong:", wrong, "blocks:", len(Pool.blocks) < 20)
"""

LOOP = """
import platform
platform.machine = lambda: %r
import contextlib, torch

net = torch.nn.Linear(8, 1).cuda()
optimizer = torch.optim.SGD(net.parameters(), 0.01)
side = torch.cuda.Stream() if %r else torch.cuda.current_stream()
for step in range(20):
    with torch.cuda.stream(side):
        x = torch.randn(4, 8).to("cuda")
    net(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


class NonBlockingTest(gpu_case.GpuCase):
    speed = "devices=1 pinned_gbs=0.00001"  # 13 ms for 128 bytes

    def applied(self, program):
        """The program's output, whether its copies were non-blocking, and the messages about the knob."""
        done = self.inline(program, "--apply", "transfer.non_blocking=true")
        said = [(note["status"], note["why"] or "") for note in self.record.notes("apply")]
        return done.stdout, self.record.settings()["transfer.non_blocking"], said

    def one_of_two_copies_blocks(self, program):
        self.applied(program)
        free = sorted(note["nonblocking_count"] for note in self.record.notes("transfer"))
        self.assertEqual((len(free), free[0]), (2, 0), free)
        self.assertGreater(free[1], 0)

    def test_pinned_memory_of_others_is_kept_until_the_copy_is_over(self):
        printed, goes_on, said = self.applied(OF_OTHERS)
        self.assertEqual(printed, "wrong: 0 blocks: True\n")
        self.assertEqual((goes_on, said), ("true", [("taken", "")]))

    def test_copies_on_another_stream_than_the_models_block_as_before(self):
        self.assertEqual(self.applied(LOOP % ("x86_64", False))[1], "true")
        _, goes_on, said = self.applied(LOOP % ("x86_64", True))
        self.assertEqual(goes_on, "false")
        self.assertTrue(any(status == "refused" and "another stream" in why for status, why in said), said)

    def test_a_copy_on_a_side_stream_blocks_beside_others_on_the_models(self):
        program = """
            import torch
            net = torch.nn.Linear(8, 1).cuda()
            optimizer = torch.optim.SGD(net.parameters(), 0.01)
            side = torch.cuda.Stream()
            for step in range(20):
                with torch.cuda.stream(side):
                    x = torch.randn(4, 8).to("cuda")
                y = torch.randn(4, 8).to("cuda")
                net(x + y).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
        """
        self.one_of_two_copies_blocks(program)

    def test_a_source_that_was_written_to_blocks_beside_fresh_ones(self):
        program = """
            import torch
            net = torch.nn.Linear(8, 1).cuda()
            optimizer = torch.optim.SGD(net.parameters(), 0.01)
            for step in range(20):
                x = torch.randn(4, 8).mul_(2).to("cuda")
                y = torch.randn(4, 8).to("cuda")
                net(x + y).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
        """
        self.one_of_two_copies_blocks(program)

    def test_pageable_memory_that_a_gpu_reads_in_place_is_copied_as_before(self):
        self.assertEqual(self.applied(LOOP % ("aarch64", False))[1], "false")


if __name__ == "__main__":
    unittest.main()
