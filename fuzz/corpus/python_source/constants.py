cpu.threads x 1

CONFIG = dict(lr=1e-4, amp=True, nested={"a": [1, 2, 'b'], 0x1f: None})
class C:
    batch_size: int = 8
    name = "x\n" r"\d" b"z"
