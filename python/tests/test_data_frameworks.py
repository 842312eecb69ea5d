"""unidle.data.Loader where a framework expects torch's DataLoader: Lightning, Accelerate, Transformers. Each
test is skipped where its framework is not installed."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

import package

from unidle.data import Loader, arrays

np, torch = package.needs("numpy", "torch")

COUNT, BATCH = 41, 8


def source():
    rows = np.arange(COUNT, dtype=np.float32)[:, None]
    return arrays(np.repeat(rows, 3, axis=1), np.arange(COUNT) % 2, names=["x", "labels"])


def framework(test, name):
    warnings.simplefilter("ignore")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    try:
        return __import__(name)
    except ImportError:
        test.skipTest(f"needs {name}")


class LightningTest(unittest.TestCase):
    def setUp(self):
        self.lightning = framework(self, "lightning")

    def fit(self, epochs, loader, held_out=None, **options):
        lightning = self.lightning

        class Module(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.net, self.seen, self.validated = torch.nn.Linear(3, 2), [], []

            def training_step(self, batch, _):
                x, labels = batch
                self.seen.append((self.current_epoch, x[:, 0].tolist()))
                return torch.nn.functional.cross_entropy(self.net(x), labels)

            def validation_step(self, batch, _):
                self.validated += batch[0][:, 0].tolist()

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=1e-4)

        module = Module()
        quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
        with tempfile.TemporaryDirectory() as folder:
            options = {"enable_checkpointing": False, "default_root_dir": folder, **quiet, **options}
            trainer = lightning.Trainer(max_epochs=epochs, accelerator="cpu", **options)
            trainer.fit(module, loader, held_out)
        return module

    def test_trains_and_validates_on_the_loaders_batches(self):
        held_out = Loader(source(), 8, shuffle=False)
        module = self.fit(2, Loader(source(), BATCH, seed=3), held_out)
        expected = Loader(source(), BATCH, seed=3)
        for epoch in range(2):
            self.assertEqual(
                [batch for number, batch in module.seen if number == epoch],
                [x[:, 0].tolist() for x, _ in expected],
            )
        self.assertEqual(sorted(set(module.validated)), list(range(COUNT)))

    def test_the_automatic_sampler_leaves_it_alone(self):
        """In several processes it puts a DistributedSampler into DataLoaders; ours shares by itself."""
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--nproc-per-node=2"]
            command += ["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", __file__, folder]
            subprocess.run(command, check=True, timeout=300, capture_output=True)
            ranks = [json.loads(path.read_text()) for path in sorted(Path(folder).iterdir())]
        self.assertEqual(len(ranks), 2)
        for epoch in range(2):
            batches = [[batch for number, batch in rank if number == epoch] for rank in ranks]
            self.assertEqual(len(batches[0]), len(batches[1]))
            self.assertEqual(
                {sample for rank in batches for batch in rank for sample in batch}, set(range(COUNT))
            )


def rank_of_lightning(folder):
    """What a process of the test above does."""
    test = LightningTest("fit")
    test.setUp()
    module = test.fit(2, Loader(source(), BATCH, seed=3), strategy="ddp", devices=2)
    (Path(folder) / os.environ["RANK"]).write_text(json.dumps(module.seen))


class AccelerateTest(unittest.TestCase):
    def test_prepare_passes_the_batches_through(self):
        accelerate = framework(self, "accelerate")
        accelerator = accelerate.Accelerator(cpu=True)
        net = torch.nn.Linear(3, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
        net, optimizer, loader = accelerator.prepare(net, optimizer, Loader(source(), BATCH, seed=3))
        expected = Loader(source(), BATCH, seed=3)
        for _ in range(2):
            seen = []
            for x, labels in loader:
                loss = torch.nn.functional.cross_entropy(net(x), labels)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
                seen.append(x[:, 0].tolist())
            self.assertEqual(seen, [x[:, 0].tolist() for x, _ in expected])


class TransformersTest(unittest.TestCase):
    def test_a_trainer_whose_loaders_are_ours(self):
        transformers = framework(self, "transformers")
        framework(self, "accelerate")
        seen = []

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.net = torch.nn.Linear(3, 2)

            def forward(self, x, labels=None):
                if self.training:
                    seen.append(x[:, 0].tolist())
                logits = self.net(x)
                return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}

        def loader(**options):
            names = lambda batch: dict(zip(("x", "labels"), batch))
            return Loader(source(), BATCH, batch_transform=names, **options)

        class Trainer(transformers.Trainer):
            def get_train_dataloader(self):
                return loader(seed=3)

            def get_eval_dataloader(self, eval_dataset=None):
                return loader(shuffle=False)

        with tempfile.TemporaryDirectory() as folder:
            arguments = transformers.TrainingArguments(
                folder,
                num_train_epochs=2,
                use_cpu=True,
                report_to=[],
                disable_tqdm=True,
                save_strategy="no",
                logging_strategy="no",
            )
            trainer = Trainer(Net(), arguments, train_dataset=[0] * COUNT, eval_dataset=[0] * COUNT)
            trainer.train()
            metrics = trainer.evaluate()
        expected = Loader(source(), BATCH, seed=3)
        self.assertEqual(seen, [x[:, 0].tolist() for _ in range(2) for x, _ in expected])
        self.assertIn("eval_loss", metrics)


if __name__ == "__main__":
    if "RANK" in os.environ:
        rank_of_lightning(sys.argv[1])
    else:
        unittest.main()
