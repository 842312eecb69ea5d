"""Which loops let their batch size be changed for their accumulation, by their source."""

import os
import sys
import textwrap
import unittest

import test_run

sys.path.insert(0, os.path.join(os.path.dirname(test_run.HERE), "shim"))

from _unidle_shim import accumulating, sources  # noqa: E402

USUAL = """
    COUNT = 4
    def train(model, loader, optimizer, scheduler, writer, ema, count, size, limit, args):
        total = seen = step = 0
        model.train()
        for epoch in range(3):
            for i, (x, y) in enumerate(loader):
                loss = criterion(model(x), y) / count
                loss.backward()
                if (i + 1) % count == 0:
                    optimizer.step()
                    optimizer.zero_grad()
"""


def look_at(text, name="train"):
    source = sources.Source(textwrap.dedent(text), "train.py")
    scope = next(node for node in source.nodes if getattr(node, "name", None) == name)
    return accumulating.find(source, scope)


def usual(*changes, more="", after=""):
    """The usual loop with texts replaced; `more` at the end of its body, `after` behind it."""
    text = USUAL
    for before, behind in changes:
        assert before in text, before
        text = text.replace(before, behind)
    text += "".join(" " * 16 + line + "\n" for line in more.splitlines())
    return text + "".join(" " * 12 + line + "\n" for line in after.splitlines())


GUARD = "if (i + 1) % count == 0:"
FOR = "for i, (x, y) in enumerate(loader):"
DIVIDE = "loss = criterion(model(x), y) / count"


class AccumulatingTest(unittest.TestCase):
    def taken(self, text):
        try:
            found = look_at(text)
        except sources.Unclear as why:
            self.fail("%s\n%s" % (why, text))
        self.assertIsNotNone(found)
        return found

    def refused(self, text, why):
        with self.assertRaises(sources.Unclear, msg=text) as raised:
            look_at(text)
        self.assertRegex(str(raised.exception), why)

    def test_ways_to_count(self):
        for changes in (
            [],
            [(GUARD, "if not (i + 1) % count:")],
            [(GUARD, "if i % count == count - 1:")],
            [(GUARD, "if (i + 1) % count == 0 or i + 1 == len(loader):")],
            [(GUARD, "if (i + 1) % count == 0 or i == len(loader) - 1:")],
            [(FOR, "for i, (x, y) in enumerate(loader, 1):"), (GUARD, "if i % count == 0:")],
            [(FOR, "for i, (x, y) in enumerate(loader, start=1):"), (GUARD, "if i % count == 0:")],
            [(FOR, "for i, batch in enumerate(tqdm(self.loader, total=len(loader))):")],
            [(FOR, "for i, batch in tqdm.tqdm(enumerate(loader)):")],
            [(FOR, "for x, y in loader:\n                step += 1"), (GUARD, "if step % count == 0:")],
            [(FOR, "for x, y in loader:\n                step = step + 1"), (GUARD, "if step % count == 0:")],
            [(GUARD, "last = (i + 1) % count == 0\n                if last:")],
            [(FOR, "for i, (x, y) in enumerate(tqdm(loaders['train'])):")],
            [(FOR, "bar = tqdm(loader, total=len(loader))\n            for i, (x, y) in enumerate(bar):"),
             (GUARD, "if (i + 1) % count == 0 or i + 1 == len(loader):")],
            [(GUARD, "last = (i + 1) % count == 0 or (i + 1) == len(loader)\n                with accelerator.sync(not last):\n                    pass\n                if last:")],
            [("/ count", "/ args.count"), ("% count", "% args.count")],
            [("/ count", "/ args['count']"), ("% count", "% args['count']")],
            [("/ count", "/ COUNT"), ("% count", "% COUNT")],
        ):
            self.taken(usual(*changes))

    def test_what_an_epoch_leaves(self):
        usually = self.taken(usual())
        self.assertEqual((usually.flushes, usually.zeroes), (False, False))
        self.assertTrue(self.taken(usual((GUARD, "if (i + 1) % count == 0 or i + 1 == len(loader):"))).flushes)
        behind = self.taken(usual(after="if len(loader) % count != 0:\n    optimizer.step()"))
        self.assertTrue(behind.flushes)
        self.assertTrue(self.taken(usual((FOR, "optimizer.zero_grad()\n            " + FOR))).zeroes)
        self.assertFalse(self.taken(usual((FOR, "if epoch == 0:\n                optimizer.zero_grad()\n            " + FOR))).zeroes)

    def test_what_happens_in_steps(self):
        step = "last = (i + 1) % count == 0\n                if last:"
        self.taken(usual((GUARD, step), more="if last:\n    ema.update(model)\n    scheduler.step()"))
        self.refused(usual((GUARD, step), more="if not last:\n    ema.update(model)"), "something with each batch")
        self.refused(usual(more="if (i + 1) % 3 == 0:\n    ema.update(model)"), "after a number of batches")
        self.refused(usual(more="if (i + 1) % 3 == 0:\n    break"), "after a number of batches")
        self.refused(usual(more="if (i + 1) % 3 == 0:\n    optimizer.step()"), "counts to another number|in the loop and no name")

    def test_an_inner_loop_for_each_step(self):
        found = self.taken("""
            def train(model, loader, optimizer, count, steps):
                batches = iter(loader)
                for step in range(steps):
                    for micro in range(count):
                        try:
                            x, y = next(batches)
                        except StopIteration:
                            batches = iter(loader)
                            x, y = next(batches)
                        with autocast():
                            loss = criterion(model(x), y)
                            loss = loss / count
                        scaler.scale(loss).backward()
                    if step % 10 == 0:
                        evaluate(model)
                    optimizer.step()
                    optimizer.zero_grad()
        """)
        self.assertTrue(found.counts_steps)

    def test_ways_to_divide(self):
        for divide in ("loss = criterion(model(x), y)\n                loss = loss / count", "loss = criterion(model(x), y)\n                loss /= count",
                       "out = model(x)\n                loss = criterion(out, y).sum(dim=1).mean() / count"):
            self.taken(usual((DIVIDE, divide)))
        self.taken(usual((DIVIDE, "loss = criterion(model(x), y)"), ("loss.backward()", "(loss / count).backward()")))
        self.taken(usual((DIVIDE, "loss = criterion(model(x), y)"), ("loss.backward()", "scaler.scale(loss / count).backward()")))

    def test_what_goes_with_any_batch(self):
        for more in ("total += loss.item() * count", "print(i, loss.item())", "if i % 50 == 0:\n    print(f'{i}/{len(loader)} {loss.item():.4f}')",
                     "bar.update(1)", "bar.set_postfix(loss=loss.item(), step=i)", "meter.update(loss.item(), x.size(0))", "metric.update(loss, y)", "bar.update()", "losses.append(loss.item())",
                     "seen += x.size(0)", "seen += len(x)", "if i % 10 == 0:\n    rate = i / 3\n    writer.add_scalar('loss', loss.item(), epoch * len(loader) + i)",
                     "n = x.size(0)\nseen += n", "if time.time() > limit:\n    break", "correct += (out == y).sum()", "if cuda:\n    torch.cuda.synchronize()"):
            self.taken(usual(more=more))
        self.taken(usual(after="print(total / (i + 1))"))
        self.taken(usual(more="step += 1", after="mean = total / step"))
        self.taken(usual(("optimizer.zero_grad()", "optimizer.zero_grad()\n                    scheduler.step()\n                    step += 1\n                    if step > limit:\n                        return")))

    def test_what_may_count_batches(self):
        for more, why in (
            ("scheduler.step()", r"calls step\(\) for each batch at train.py:13"),
            ("ema.update()", "something with each batch that may count them, at train.py:13"),
            ("ema.update(model)", "something with each batch that may count them, at train.py:13"),
            ("if i >= limit:\n    break", "after a number of batches at train.py:13"),
            ("if i % 500 == 0:\n    evaluate(model)", "after a number of batches"),
            ("rate = lr(i)", "more with the number of its batches than log it at train.py:13"),
            ("step += 1\nif step == limit:\n    break", "after a number of batches at train.py:14"),
            ("seen += size\nlr = seen / 1000", "more with the number of its batches than log it at train.py:14"),
            ("seen += args['size']\nif seen > limit:\n    return", "after a number of batches"),
            ("self.step += 1", "counts in something other than a name"),
            ("adjust(model)", "something with each batch"),
            ("if i % 10 == 0:\n    step += 1", "after a number of batches|number of its batches"),
            ("count = 2", "changes the count in the loop"),
            ("lr = count * 2", "more with the number of batches of a step"),
            ("z = next(other)", "asks something else"),
            ("def hook():\n    return i", "defines a function"),
            ("clip_grad_norm_(model)", "(with|for) each batch"),
            ("torch.nn.utils.clip_grad_norm_(p, 1)", "(with|for) each batch"),
            ("optimizer.zero_grad()", "(with|for) each batch"),
            ("if count > 2:\n    print(1)\n    model(x)", "number of batches of a step"),
        ):
            self.refused(usual(more=more), why)
        self.refused(usual(("for epoch in range(3):", "while step < limit:"), more="step += 1"), "more with the number of its batches than log it at train.py:6")
        self.refused(usual(after="if (i + 1) % count != 0:\n    optimizer.step()"), "more with the number of batches of a step")

    def test_loops_that_cannot_be_followed(self):
        for changes, why in (
            ([(GUARD, "if (i + 1) % 4 == 0:")], "has the number of batches of a step, 4, in the loop and no name for it, at train.py:10"),
            ([(GUARD, "if i % count == 0:")], "does not step when the count is complete at train.py:10"),
            ([(GUARD, "if (i + 1) % count == 0 and ready(i):")], "not .* alone decides"),
            ([(GUARD, "if (i + 1) % count == 0 or i + 1 == last:")], "not .* alone decides"),
            ([(GUARD, "if (i + 1) % count == 0 or i + 1 == len(other):")], "not .* alone decides"),
            ([(GUARD, "if (i + 1) % (count * 2) == 0:")], "computed"),
            ([(GUARD, "if (epoch + 1) % count == 0:")], "not .* alone decides"),
            ([(DIVIDE, "loss = criterion(model(x), y)")], "does not divide its loss"),
            ([(DIVIDE, "loss = criterion(model(x), y)\n                log = loss / count")], "does not divide its loss"),
            ([(DIVIDE, "loss = criterion(model(x), y).sum() / count")], "adds up the losses"),
            ([(DIVIDE, "loss = criterion(model(x), y, reduction='sum') / count")], "adds up the losses"),
            ([(FOR, "for i, (x, y) in enumerate(islice(loader, 5)):")], "counts the batches itself"),
            ([(FOR, "for i, (x, y) in enumerate(zip(loader, loader)):")], "counts the batches itself"),
            ([(FOR, "for i in range(limit):\n                x, y = next(loader)")], "counts the batches itself"),
            ([(GUARD, "if True:")], "not .* alone decides"),
            ([(GUARD, "optimizer.step()\n                if i > 3:"), ("                    optimizer.step()\n", "")], "does not sum the gradients of several batches"),
        ):
            self.refused(usual(*changes), why)

    def test_no_training_loop(self):
        self.assertIsNone(look_at("def train(loader):\n    for x in loader:\n        print(x)\n"))
        self.assertIsNone(look_at("def train(loader):\n    def inner():\n        for x in loader:\n            x.backward()\n"))
        self.refused("def train(a, b):\n    for x in a:\n        x.backward()\n    for x in b:\n        x.backward()\n", "several loops .* train.py:2 and train.py:4")


if __name__ == "__main__":
    unittest.main()
