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
    return accumulating.find(source, scope, [source])


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
    def taken(self, text, name="train"):
        try:
            found = look_at(text, name)
        except sources.Unclear as why:
            self.fail("%s\n%s" % (why, text))
        self.assertIsNotNone(found)
        return found

    def refused(self, text, why=r"at train.py:\d+|at line \d+|the loop at"):
        with self.assertRaises(sources.Unclear, msg=text) as raised:
            look_at(text)
        self.assertRegex(str(raised.exception), why, text)

    def test_ways_to_count(self):
        for changes in (
            [],
            [(GUARD, "if not (i + 1) % count:")],
            [(GUARD, "if i % count == count - 1:")],
            [(GUARD, "if (i + 1) % count == 0 or i + 1 == len(loader):")],
            [(GUARD, "if (i + 1) % count == 0 or i == len(loader) - 1:")],
            [(FOR, "for i, (x, y) in enumerate(loader, 1):"), (GUARD, "if i % count == 0:")],
            [(FOR, "for i, (x, y) in enumerate(loader, start=1):"), (GUARD, "if i % count == 0 or i == len(loader):")],
            [(FOR, "for i, batch in enumerate(tqdm(self.loader, total=len(loader))):"), ("model(x), y", "model(batch)")],
            [(FOR, "for i, batch in tqdm.tqdm(enumerate(loader)):"), ("model(x), y", "model(batch)")],
            [(FOR, "for i, (x, y) in enumerate(tqdm(loaders['train'])):")],
            [(FOR, "bar = tqdm(loader, total=len(x))\n            for i, (x, y) in enumerate(bar):"),
             (GUARD, "if (i + 1) % count == 0 or i + 1 == len(loader):")],
            [(FOR, "n = 0\n            for x, y in loader:\n                n += 1"), (GUARD, "if n % count == 0:")],
            [(FOR, "n = 0\n            for x, y in loader:\n                n = n + 1"), (GUARD, "if n % count == 0:")],
            [(GUARD, "last = (i + 1) % count == 0 or (i + 1) == len(loader)\n                if last:")],
            [("/ count", "/ args.count"), ("% count", "% args.count")],
            [("/ count", "/ args['count']"), ("% count", "% args['count']")],
            [("/ count", "/ COUNT"), ("% count", "% COUNT")],
        ):
            self.taken(usual(*changes))

    def test_what_an_epoch_leaves(self):
        usually = self.taken(usual())
        self.assertEqual((usually.flushes, usually.zeroes), (False, False))
        self.assertTrue(self.taken(usual((GUARD, "if (i + 1) % count == 0 or i + 1 == len(loader):"))).flushes)
        self.assertTrue(self.taken(usual(after="if len(loader) % count != 0:\n    optimizer.step()")).flushes)
        self.assertTrue(self.taken(usual((FOR, "optimizer.zero_grad()\n            " + FOR))).zeroes)
        self.assertFalse(self.taken(usual((FOR, "if epoch == 0:\n                optimizer.zero_grad()\n            " + FOR))).zeroes)
        self.taken(usual(after="scheduler.step()"))
        self.refused(usual(after="optimizer.step()"), "steps behind the loop")
        self.refused(usual(after="if (i + 1) % count != 0:\n    optimizer.step()"))

    def test_what_happens_in_steps(self):
        for inside in ("clip(model)\noptimizer.step()", "if scheduler is not None:\n    scheduler.step()", "if amp:\n    scaler.step(optimizer)\n    scaler.update()",
                       "ema.update(model)", "step += 1\nif step >= limit:\n    return", "if step % 10 == 0:\n    evaluate(model)"):
            self.taken(usual(("optimizer.zero_grad()", "optimizer.zero_grad()\n" + textwrap.indent(inside, " " * 20))))
        last = "last = (i + 1) % count == 0\n                if last:"
        self.taken(usual((GUARD, last), more="if last:\n    ema.update(model)\n    scheduler.step()"))
        self.refused(usual((GUARD, last), more="if not last:\n    ema.update(model)"))

    def test_ways_to_divide(self):
        for divide in ("loss = criterion(model(x), y)\n                loss = loss / count", "loss = criterion(model(x), y)\n                loss /= count",
                       "loss = criterion(model(x), y)\n                if count > 1:\n                    loss = loss / count",
                       "with autocast():\n                    loss = criterion(model(x), y) / count",
                       "out = model(x)\n                loss = criterion(out, y).sum(dim=1).mean() / count"):
            self.taken(usual((DIVIDE, divide)))
        plain = (DIVIDE, "loss = criterion(model(x), y)")
        for backward in ("(loss / count).backward()", "scaler.scale(loss / count).backward()", "accelerator.backward(loss / count)"):
            self.taken(usual(plain, ("loss.backward()", backward)))
        self.taken(usual((DIVIDE, DIVIDE + "\n                loss = loss / 1"), ("loss.backward()", "scaler.scale(loss / count).backward()")))

    def test_losses_that_are_no_mean_over_the_samples(self):
        for divide in ("loss = criterion(model(x), y)", "loss = criterion(model(x), y)\n                log = loss / count",
                       "loss = criterion(model(x), y).sum() / count", "loss = criterion(model(x), y).sum(0).mean() / count",
                       "loss = criterion(model(x), y, reduction='sum') / count", "loss = criterion(model(x), y, ignore_index=0) / count",
                       "loss = CrossEntropyLoss(weight=w)(model(x), y) / count", "loss = torch.sqrt(criterion(model(x), y)) / count",
                       "loss = (criterion(model(x), y) + kl / len(loader)) / count", "loss = criterion(model(x), y) / count + l1(model(x))",
                       "loss = criterion(model(x), y)\n                if amp:\n                    loss = loss / count",
                       "loss = criterion(model(x), y) / count\n                aux = other(model(x), y)\n                aux.backward()",
                       "loss = 0\n                for a, b in zip(x, y):\n                    loss += criterion(a, b)\n                loss = loss / count",
                       "loss = added(x, y) / count"):
            self.refused("def added(x, y):\n    return (x - y).sum()\n" + textwrap.dedent(usual((DIVIDE, divide))))
        self.refused(usual((DIVIDE, "loss = criterion(model(x), y)"), ("loss.backward()", "loss.backward()\n                loss = loss / count")))

    def test_what_goes_with_any_batch(self):
        for more in ("total += loss.item() * count", "print(i, loss.item())", "if i % 50 == 0:\n    print(f'{i}/{len(loader)} {loss.item():.4f}')",
                     "bar.update(1)", "bar.update()", "bar.set_postfix(loss=loss.item(), step=i)", "meter.update(loss.item(), x.size(0))", "metric.update(loss, y)",
                     "losses.append(loss.item())", "seen += x.size(0)", "seen += len(x)", "n = x.size(0)\nseen += n", "x = x.to(device)",
                     "if i % 10 == 0:\n    at = epoch * len(loader) + i\n    writer.add_scalar('loss', loss.item(), at)",
                     "niter = epoch * len(loader) + i\nwriter.add_scalar('loss', loss.item(), niter)", "correct += (x == y).sum()",
                     "if cuda:\n    torch.cuda.synchronize()", "time.sleep(0.1)", "del x, loss", "meter.update(time.time() - end)\nend = time.time()",
                     "if not math.isfinite(loss.item()):\n    print('stopping')\n    sys.exit(1)", "batch_size = x.size(0)\nseen += batch_size",
                     "if i % 10 == 0:\n    print(total / 10)\n    total = 0.0\ntotal += loss.item()", "if cuda:\n    x = x.cuda()"):
            self.taken(usual(more=more))
        self.taken(usual(more="total += loss.item() * count", after="print(total / (i + 1))\nmean = total / len(loader)\nreturn mean"))
        self.taken(usual(more="total += loss.item()", after="mean = total / len(loader)\nprint(mean)"))
        self.refused(usual(more="total += loss.item()", after="mean = total / len(loader)\nreturn mean"), "more with the divided losses")
        self.refused(usual(more="losses.append(loss.item())", after="return losses"), "more with the divided losses")
        first = (DIVIDE, "loss = criterion(model(x), y)\n                total += loss.item()\n                loss = loss / count")
        self.taken(usual(first, after="return total / len(loader)"))
        steps = ("optimizer.zero_grad()", "optimizer.zero_grad()\n                    steps += 1")
        self.taken(usual(steps, more="if steps >= limit:\n    break"))
        self.refused(usual(steps, more="n = x.size(0)\nif steps >= n:\n    break"))
        self.taken(usual(more="step += 1", after="mean = total / step"))
        self.taken(usual(more="losses.append(loss.item() * count)", after="mean = sum(losses) / len(losses)\nnp.mean(losses)"))

    def test_what_may_count_batches(self):
        for more in ("scheduler.step()", "ema.update(model)", "ema.update()", "if i >= limit:\n    break", "if i % 500 == 0:\n    evaluate(model)",
                     "if (i + 1) % 3 == 0:\n    ema.update(model)", "if (i + 1) % 3 == 0:\n    break", "if (i + 1) % 3 == 0:\n    optimizer.step()",
                     "rate = lr(i)", "step += 1\nif step == limit:\n    break", "seen += size\nx = x * seen", "seen += args['size']\nif seen > limit:\n    return",
                     "seen += x.size(0)\nif seen >= 100:\n    break", "self.step += 1", "adjust(model)", "if i % 10 == 0:\n    step += 1", "count = 2", "lr = count * 2\nx = x * lr",
                     "z = next(other)", "def hook():\n    return i", "clip_grad_norm_(model)", "torch.nn.utils.clip_grad_norm_(p, 1)", "norm = clip_grad_norm_(p, 1)",
                     "optimizer.zero_grad()", "if count > 2:\n    print(1)\n    model(x)", "step += 1\nif step <= 16:\n    optimizer.param_groups[0]['lr'] = 0.1 * step / 16",
                     "step += 1\nif step >= 24:\n    done = True\nif done:\n    break", "step += 1\nif step < 9:\n    beta = step / 9\nelse:\n    beta = 1.0\nx = x * beta",
                     "if i % 500 == 0:\n    val = evaluate(model)\n    best = copy.deepcopy(model)", "beta = min(1.0, beta + 0.05)", "losses.append(loss.item())\nif len(losses) % 8 == 0:\n    validate()",
                     "lr *= 0.999", "for g in groups:\n    g['lr'] *= 0.999", "left -= 1\nif left == 0:\n    break", "if bar.n >= limit:\n    break", "p.data = 0.999 * p.data",
                     "lr = adjust_learning_rate(optimizer, args)", "if stopper(loss.item()):\n    break", "bx, by = buffer.sample(n)", "if loss.item() < 0.01:\n    break",
                     "noise = torch.randn(args.batch_size, 4)", "if x.size(0) != args.batch_size:\n    continue", "x = x.view(args.batch_size, -1)", "while x.sum() > 0:\n    x = x - y",
                     "avg = 0.9 * avg + 0.1 * loss.item()\nif avg < 1:\n    break", "with no_sync():\n    pass", "try:\n    x = y\nexcept ValueError:\n    pass",
                     "history['loss'] = loss.item()", "step, done = step + 1, False", "state = model.update(state, x)"):
            self.refused(usual(more=more))
        self.refused(usual(("optimizer.zero_grad()", "optimizer.zero_grad()\n                    group['lr'] = base * (1 - n / (epochs * len(loader)))")))
        self.refused(usual(("for epoch in range(3):", "while step < limit:"), more="step += 1"))
        self.refused(usual(more="losses.append(loss.item())", after="if len(losses) > 1000:\n    break"))
        self.refused(usual((FOR, "n = len(loader)\n            " + FOR), after="mean = total / n\nreturn mean"))
        self.refused(usual(("for epoch in range(3):", "h = torch.zeros(args.batch_size, 4)\n        for epoch in range(3):")))

    def test_where_else_the_count_is_used(self):
        total = ("for epoch in range(3):", "schedule = Cosine(optimizer, len(loader) // count * 3)\n        for epoch in range(3):")
        self.refused(usual(total), "number of batches of an epoch")  # who knows how often the function is called
        self.taken(textwrap.dedent(usual(total)) + "\ntrain(model, loader, optimizer)\n")
        self.refused(textwrap.dedent(usual(total)) + "\nfor fold in range(3):\n    train(model, loader, optimizer)\n")
        self.taken(usual(("for epoch in range(3):", "schedule = Cosine(optimizer, 100 // count)\n        for epoch in range(3):")))  # a local one is new in each call
        shared = [("/ count", "/ args.count"), ("% count", "% args.count")]
        self.refused(textwrap.dedent(usual(*shared)) + "\ndef other(loader):\n    return len(loader) // args.count\n", "number of batches of a step")
        self.refused(textwrap.dedent(usual(*shared)) + "\nschedule = LambdaLR(o, lambda s: s * args.count)\n", "number of batches of a step")
        self.taken(textwrap.dedent(usual(*shared)) + "\nprint(args.count)\n")
        self.refused(usual(after="rate = 3 * count\nuse(rate)"))

    def test_loops_that_cannot_be_followed(self):
        for changes, why in (
            ([(GUARD, "if (i + 1) % 4 == 0:")], "has the number of batches of a step, 4, in the loop and no name for it, at train.py:10"),
            ([(GUARD, "if i % count == 0:")], "does not step when the count is complete at train.py:10"),
            ([(GUARD, "if (i + 1) % count == 0 and ready(i):")], "alone decides"),
            ([(GUARD, "if (i + 1) % count == 0 or i + 1 == last:")], "alone decides"),
            ([(GUARD, "if (i + 1) % count == 0 or i + 1 == len(other):")], "alone decides"),
            ([(GUARD, "if (i + 1) % count == 0 or i == len(loader):")], "alone decides"),
            ([(GUARD, "if (i + 1) % (count * 2) == 0:")], "computed"),
            ([(GUARD, "if (epoch + 1) % count == 0:")], "alone decides"),
            ([(FOR, "for i, (x, y) in enumerate(loader, start=resume):")], "alone decides"),
            ([(FOR, "for x, y in loader:\n                step += 1"), (GUARD, "if step % count == 0:")], "alone decides"),
            ([(GUARD, "optimizer.step()\n                if i > 3:"), ("                    optimizer.step()\n", "")], "does not sum the gradients of several batches"),
            ([(FOR, "for i, (x, y) in enumerate(islice(loader, 5)):")], "counts the batches itself"),
            ([(FOR, "for i, (x, y) in enumerate(zip(loader, loader)):")], "counts the batches itself"),
            ([(FOR, "for i in range(limit):\n                x, y = next(loader)")], "counts the batches itself"),
            ([(GUARD, "if True:")], "alone decides"),
        ):
            self.refused(usual(*changes), why)

    def test_no_training_loop(self):
        self.assertIsNone(look_at("def train(loader):\n    for x in loader:\n        print(x)\n"))
        self.assertIsNone(look_at("def train(loader):\n    def inner():\n        for x in loader:\n            x.backward()\n"))
        self.refused("def train(a, b):\n    for x in a:\n        x.backward()\n    for x in b:\n        x.backward()\n", "several loops .* train.py:2 and train.py:4")


if __name__ == "__main__":
    unittest.main()
