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
    criterion = nn.CrossEntropyLoss()
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
        self.refused(usual(("loss.backward()", "scaler.scale(loss / count).backward()")))  # twice

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
                     "if i % 10 == 0:\n    print(total / 10)\n    total = 0.0\ntotal += loss.item()", "if cuda:\n    x = x.cuda()",
                     "if isinstance(x, list):\n    x = x[0]", "if torch.isnan(loss):\n    raise ValueError('no number')"):
            self.taken(usual(more=more))
        self.taken(usual(more="total += loss.item() * count", after="print(total / (i + 1))\nmean = total / len(loader)\nreturn mean"))
        self.taken(usual(more="total += loss.item()", after="mean = total / len(loader)\nprint(mean)"))
        self.refused(usual(more="total += loss.item()", after="mean = total / len(loader)\nreturn mean"), "more with the divided losses")
        self.refused(usual(more="losses.append(loss.item())", after="return losses"), "more with losses than log it")
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
                     "if loss.item() < 0.01:\n    sys.exit(0)", "if loss.item() > 9:\n    raise StopIteration", "if x.mean() > 0:\n    x = -x", "x = mixed(x, beta(0.2, 0.2))",
                     "x = x / count", "total += loss.item() / count\nuse = total", "history['loss'] = loss.item()", "step, done = step + 1, False", "state = model.update(state, x)"):
            self.refused(usual(more=more))
        self.refused(usual(("optimizer.zero_grad()", "optimizer.zero_grad()\n                    group['lr'] = base * (1 - n / (epochs * len(loader)))")))
        self.refused(usual(("for epoch in range(3):", "while step < limit:"), more="step += 1"))
        self.refused(usual(more="losses.append(loss.item())", after="if len(losses) > 1000:\n    break"))
        self.refused(usual((FOR, "n = len(loader)\n            " + FOR), after="mean = total / n\nreturn mean"))
        self.refused(usual(("for epoch in range(3):", "h = torch.zeros(args.batch_size, 4)\n        for epoch in range(3):")))

    def test_losses_that_are(self):
        head = """
            import torch.nn as nn
            class Own(nn.Module):
                def __init__(self):
                    self.mse = nn.MSELoss()
                def forward(self, o, y):
                    return self.mse(o, y) + 0.1 * (o - y).abs().mean()
            def per_sample(o, y):
                loss = ((o - y) ** 2).sum(dim=1)
                return loss.mean()
            def summed(o, y):
                return inner(o, y)
            def inner(o, y):
                return ((o - y) ** 2).sum()
            class Summed(nn.Module):
                def forward(self, o, y):
                    return ((o - y) ** 2).sum()
            own = Own().to(device)
            alias = F.mse_loss
            bad = Summed()
        """
        def with_loss(loss):
            return textwrap.dedent(head) + textwrap.dedent(usual((DIVIDE, "loss = %s / count" % loss)))

        for loss in ("F.cross_entropy(model(x), y, label_smoothing=0.1)", "own(model(x), y)", "alias(model(x), y)", "per_sample(model(x), y)",
                     "(criterion(model(x), y) + 0.4 * F.mse_loss(x, y))", "((model(x) - y) ** 2).mean()", "torch.mean((model(x) - y).abs())",
                     "F.cross_entropy(model(x).view(-1, 10), y.view(-1))"):
            self.taken(with_loss(loss))
        for loss in ("summed(model(x), y)", "bad(model(x), y)", "model(x, y)", "model(x).loss", "unknown(model(x), y)", "nn.CrossEntropyLoss(w)(model(x), y)",
                     "F.cross_entropy(model(x), y, w)", "F.l1_loss(model(x)[y > 0], y[y > 0])", "criterion(model(x), y) ** 0.5", "torch.log(criterion(model(x), y))",
                     "torch.norm(model(x) - y)", "10 * torch.log10(F.mse_loss(x, y))", "criterion(model(x), y) * x.size(0)", "(model(x) - y).norm(dim=0).mean()"):
            self.refused(with_loss(loss))
        self.refused(with_loss("own(model(x), y)") + "\ndef collate(rows):\n    return pad_sequence(rows)\n", "fills samples up")
        self.refused(with_loss("own(model(x), y)") + "\nfor p in model.parameters():\n    p.register_hook(clamp)\n", "gradient of each batch")

    def test_what_a_batch_gave_decides_nothing(self):
        step = "optimizer.zero_grad()"
        for inside in ("if loss.item() < 0.4:\n    return", "seen += x.size(0)\nif seen > limit:\n    break", "scheduler.step(loss.item())", "last = x"):
            self.refused(usual((step, step + "\n" + textwrap.indent(inside + "\nuse(last)", " " * 20))))
        for after in ("if loss.item() < 0.01:\n    break", "scheduler.step(loss)", "return loss.item()"):
            self.refused(usual(after=after))
        plain = [(DIVIDE, "loss = criterion(model(x), y)"), ("loss.backward()", "(loss / count).backward()")]
        self.refused(usual(*plain, more="total += loss.item()", after="if total < 10:\n    break"))
        self.refused(usual(*plain, more="total += loss.item()", after="return total / len(loader.dataset)"))
        self.taken(usual(*plain, more="total += loss.item()", after="return total / len(loader)"))
        self.taken(usual(*plain, more="total += loss.item() * x.size(0)", after="return total / len(loader.dataset)"))
        self.taken(usual(*plain, more="total += loss.item()\nseen += len(x)", after="if seen > limit:\n    break"))
        self.taken(usual(after="for x, y in other:\n    loss = criterion(model(x), y)\n    check(loss)"))
        self.refused(usual(*plain, more="losses.append(loss.item())", after="if np.mean(losses[-100:]) < 0.05:\n    break"))
        self.refused(usual(*plain, more="seen.append(x)\nlosses.append(loss.item())", after="if len(losses) > 9:\n    break"))

    def test_logs_that_do_more(self):
        for more in ("if i < 8:\n    w = 0.0\nelse:\n    w = 1.0\nx = x * w", "if (i + 1) % 4 == 0:\n    print(validate(model))", "print(scheduler.step())",
                     "if stopper(loss.item()):\n    print('stop')", "if i > 1000:\n    stop = 1", "log.info('%f', clip_grad_norm_(p, 1))"):
            self.refused(usual(more=more, after="if stop:\n    break"))

    def test_other_functions(self):
        text = textwrap.dedent(usual())
        for other in ("class Net:\n    def forward(self, x):\n        return torch.zeros(1, self.batch_size)", "def augment(x):\n    return x.view(BATCH_SIZE, -1)",
                      "schedule = LambdaLR(o, lambda s: 1 - s / (9 * len(train_loader)))", "def rate(it):\n    return it / len(loader)"):
            self.refused(text + "\n" + other + "\n")
        for other in ("class Net:\n    def __init__(self, batch_size):\n        self.batch_size = batch_size", "print(args.batch_size)",
                      "def evaluate(model, loader):\n    model.eval()\n    return total(model, loader) / len(loader)", "def make(batch_size):\n    return DataLoader(data, batch_size=batch_size)"):
            self.taken(text + "\n" + other + "\n")
        self.refused(usual((GUARD, "if (i + 1) % count == 0:\n                    optimizer.step()\n                loss = criterion(model(x), y) / count\n                loss.backward()\n                if (i + 1) % count == 0:")))

    def test_where_else_the_count_is_used(self):
        total = ("for epoch in range(3):", "schedule = Cosine(optimizer, len(loader) // count * 3)\n        for epoch in range(3):")
        self.refused(usual(total), "number of batches of an epoch")  # who knows how often the function is called
        self.taken(textwrap.dedent(usual(total)) + "\ntrain(model, loader, optimizer)\n")
        self.refused(textwrap.dedent(usual(total)) + "\nfor fold in range(3):\n    train(model, loader, optimizer)\n")
        self.taken(usual(("for epoch in range(3):", "schedule = Cosine(optimizer, 100 // count)\n        for epoch in range(3):")))  # a local one is new in each call
        shared = [("/ count", "/ COUNT"), ("% count", "% COUNT")]
        self.refused(textwrap.dedent(usual(*shared)) + "\ndef other(loader):\n    return 9 // COUNT\n", "number of batches of a step")
        self.refused(textwrap.dedent(usual(*shared)) + "\nschedule = LambdaLR(o, lambda s: s * COUNT)\n", "number of batches of a step")
        self.taken(textwrap.dedent(usual(*shared)) + "\nprint(COUNT)\n")
        self.refused(usual(after="rate = 3 * count\nuse(rate)"))
        self.refused(usual(("optimizer.zero_grad()", "optimizer.zero_grad()\n                    group['lr'] = base / count")))

    def test_loops_that_cannot_be_followed(self):
        for changes, why in (
            ([(GUARD, "if (i + 1) % 4 == 0:")], "has the number of batches of a step, 4, in the loop and no name for it, at train.py:11"),
            ([(GUARD, "if i % count == 0:")], "does not step when the count is complete at train.py:11"),
            ([(GUARD, "if (i + 1) % count == 0 and ready(i):")], "alone decides"),
            ([(GUARD, "if (i + 1) % count == 0 or i + 1 == last:")], "alone decides"),
            ([(GUARD, "if (i + 1) % count == 0 or i + 1 == len(other):")], "alone decides"),
            ([(GUARD, "if (i + 1) % count == 0 or i == len(loader):")], "alone decides"),
            ([(GUARD, "if (i + 1) % (count * 2) == 0:")], "no name of its own"),
            ([("/ count", "/ args.count"), ("% count", "% args.count")], "no name of its own"),
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
