"""unidle.data.Loader where a framework expects torch's DataLoader: Lightning, Accelerate, Transformers. Each
test is skipped if its framework is not installed."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

import package

from unidle.data import Loader, arrays, wrap

np, torch = package.needs("numpy", "torch")

COUNT, BATCH = 41, 8


def columns():
    rows = np.arange(COUNT, dtype=np.float32)[:, None]
    return np.repeat(rows, 3, axis=1), np.arange(COUNT) % 2


def source():
    return arrays(*columns(), names=["x", "labels"])


def launch(ranks, name, folder):
    command = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", f"--nproc-per-node={ranks}"]
    command += ["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", __file__, name, folder]
    subprocess.run(command, check=True, timeout=300, capture_output=True)


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

    def fit(self, epochs, loader, held_out=None, checkpoint=None, **options):
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
            trainer.fit(module, loader, held_out, ckpt_path=checkpoint, weights_only=False)
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
        """With several processes it puts a DistributedSampler into DataLoaders; ours divides the samples
        itself."""
        with tempfile.TemporaryDirectory() as folder:
            launch(2, "lightning", folder)
            ranks = [json.loads(path.read_text()) for path in sorted(Path(folder).iterdir())]
        self.assertEqual(len(ranks), 2)
        for epoch in range(2):
            batches = [[batch for number, batch in rank if number == epoch] for rank in ranks]
            self.assertEqual(len(batches[0]), len(batches[1]))
            self.assertEqual(
                {sample for rank in batches for batch in rank for sample in batch}, set(range(COUNT))
            )

    @classmethod
    def rank(cls, folder):
        """The work of a process of the test above."""
        test = cls("fit")
        test.setUp()
        module = test.fit(2, Loader(source(), BATCH, seed=3), strategy="ddp", devices=2)
        (Path(folder) / os.environ["RANK"]).write_text(json.dumps(module.seen))

    def test_goes_on_from_a_checkpoint(self):
        from lightning.pytorch.callbacks import ModelCheckpoint

        whole = [batch for _, batch in self.fit(3, Loader(source(), BATCH, seed=3)).seen]
        for steps, often in ((3, {"every_n_train_steps": 3}), (8, {"every_n_train_steps": 8}), (6, {})):
            with tempfile.TemporaryDirectory() as folder:
                kept = ModelCheckpoint(folder, save_on_train_epoch_end=not often, **often)
                options = {"enable_checkpointing": True, "callbacks": [kept]}
                begun = self.fit(3, Loader(source(), BATCH, seed=3), max_steps=steps, **options)
                resumed = self.fit(3, Loader(source(), BATCH, seed=3), checkpoint=kept.best_model_path)
            self.assertEqual([batch for _, batch in begun.seen + resumed.seen], whole)


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

    def accelerator(self, **options):
        accelerate = framework(self, "accelerate")
        accelerate.state.AcceleratorState._reset_state(True)
        accelerate.state.GradientState._reset_state()
        return accelerate.Accelerator(cpu=True, **options)

    def steps(self, make, accumulated, skipped=0, left_at=None):
        """At which batch of which epoch the optimizer steps, with the first sample of each batch."""
        accelerator = self.accelerator(gradient_accumulation_steps=accumulated)
        net = torch.nn.Linear(3, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0)
        net, optimizer, loader, held_out = accelerator.prepare(net, optimizer, make(), make())
        told = []
        for epoch in range(3):
            batches = accelerator.skip_first_batches(loader, skipped) if epoch == 1 and skipped else loader
            for number, (x, labels) in enumerate(batches):
                with accelerator.accumulate(net):
                    accelerator.backward(torch.nn.functional.cross_entropy(net(x), labels))
                    optimizer.step()
                    told.append((epoch, number, x[0, 0].item(), accelerator.sync_gradients))
                if number == 2:
                    rows = [len(accelerator.gather_for_metrics(batch[0])) for batch in held_out]
                    told.append(rows)
                if number == left_at:
                    break
        return told

    def test_accumulation_ends_with_the_epoch(self):
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(*(torch.from_numpy(column) for column in columns()))
        for drop_last in (False, True):
            options = {"batch_size": BATCH, "shuffle": False, "drop_last": drop_last}
            for accumulated in (1, 3, 4, 7):
                for asked in ({}, {"skipped": 2}, {"skipped": 5}, {"left_at": 3}):
                    expected = self.steps(lambda: DataLoader(data, **options), accumulated, **asked)
                    for make in (source, lambda: wrap(data)):
                        ours = self.steps(lambda: Loader(make(), **options), accumulated, **asked)
                        self.assertEqual(ours, expected)

    def test_an_iteration_that_was_left_is_forgotten(self):
        accelerator = self.accelerator(gradient_accumulation_steps=2)
        loader, other = Loader(source(), BATCH), Loader(source(), BATCH)
        for end in (2, len(loader)):
            batches = iter(loader)
            for _ in range(end):
                next(batches)
            self.assertEqual(accelerator.gradient_state.end_of_dataloader, end == len(loader))
            self.assertTrue(accelerator.gradient_state.in_dataloader)
            if end == 2:
                list(loader)  # while `batches` exists
                self.assertFalse(accelerator.gradient_state.in_dataloader)
        for _ in other:
            self.assertFalse(accelerator.gradient_state.end_of_dataloader)
            break
        self.assertTrue(accelerator.gradient_state.end_of_dataloader)
        del batches
        self.assertFalse(accelerator.gradient_state.in_dataloader)

    def test_a_saved_state_has_the_position_of_a_registered_loader(self):
        def prepared(seed):
            accelerator = self.accelerator()
            loader = accelerator.prepare(Loader(source(), BATCH, seed=seed))
            accelerator.register_for_checkpointing(loader)
            return accelerator, loader

        _, loader = prepared(3)
        whole = [x[:, 0].tolist() for _ in range(3) for x, _ in loader]
        for done in (1, 4, 6, 8):
            accelerator, loader = prepared(3)
            with tempfile.TemporaryDirectory() as folder:
                batches = (None for _ in range(3) for _ in loader)
                for _ in range(done):
                    next(batches)
                accelerator.save_state(folder)
                accelerator, loader = prepared(5)
                accelerator.load_state(folder)
            rest = [x[:, 0].tolist() for _ in range(loader.epoch, 3) for x, _ in loader]
            self.assertEqual(rest, whole[done:], done)

    def test_what_is_skipped_is_not_made(self):
        accelerator, made = self.accelerator(), []

        class Rows:
            def __len__(self):
                return COUNT

            def __getitem__(self, row):
                made.append(row)
                return row

        def loader(**options):
            return Loader(wrap(Rows()), BATCH, seed=3, workers=0, **options)

        for options in ({}, {"drop_last": True}, {"rank": 1, "world": 2}):
            expected = loader(**options)
            epochs = [[batch.tolist() for batch in expected] for _ in range(3)]
            for skipped in range(len(expected) + 1):
                ours = loader(**options)
                rest = accelerator.skip_first_batches(ours, skipped)
                self.assertEqual(len(rest), len(ours) - skipped)
                rest.batch_sampler.batch_sampler.set_epoch(1)
                made.clear()
                taken = [batch.tolist() for batch in rest]
                self.assertEqual(taken, epochs[1][skipped:])
                self.assertEqual(made, sum(taken, []))
                self.assertEqual([batch.tolist() for batch in rest], epochs[2][skipped:])
                self.assertEqual(ours.epoch, 3)

    def test_a_loader_is_prepared(self):
        loader = Loader(source(), BATCH)
        self.assertIs(self.accelerator().prepare_data_loader(loader), loader)

    def test_metrics_of_ranks_have_each_sample_once(self):
        framework(self, "accelerate")
        for ranks in (2, 3):
            with tempfile.TemporaryDirectory() as folder:
                launch(ranks, "accelerate", folder)
                told = json.loads((Path(folder) / "0").read_text())
            for count, rows, repeats in told:
                self.assertEqual(sorted(set(rows)), list(range(count)))
                self.assertEqual(len(rows), count + (repeats if repeats > 1 else 0))

    @classmethod
    def rank(cls, folder):
        test = cls("accelerator")
        accelerator = test.accelerator()
        told = []
        for count in (12, 13, 14, 15, 41):
            loader = Loader(arrays(np.arange(count)), 2, shuffle=False)
            rows = []
            for (batch,) in accelerator.prepare(loader):
                rows += accelerator.gather_for_metrics(batch).tolist()
            told.append((count, rows, -count % accelerator.num_processes))
        (Path(folder) / os.environ["RANK"]).write_text(json.dumps(told))


class TransformersTest(unittest.TestCase):
    def setUp(self):
        self.transformers = framework(self, "transformers")
        framework(self, "accelerate")

    def train(self, folder, resume=None, own_state=False, stop=None, **options):
        """The batches in order, the weights and the trainer."""
        transformers, seen = self.transformers, []

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

        train_loader = loader(seed=3)

        class Trainer(transformers.Trainer):
            def get_train_dataloader(self):
                return train_loader

            def get_eval_dataloader(self, eval_dataset=None):
                return loader(shuffle=False)

        class Saved(transformers.TrainerCallback):
            def on_save(self, arguments, state, control, **_):
                (Path(folder) / f"{state.global_step}.json").write_text(json.dumps(train_loader.state_dict()))
                control.should_training_stop = state.global_step == stop

        arguments = transformers.TrainingArguments(
            folder,
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
            logging_strategy="no",
            save_strategy="steps" if stop else "no",
            save_steps=stop or 500,
            **options,
        )
        torch.manual_seed(0)
        data = [0] * COUNT
        trainer = Trainer(Net(), arguments, train_dataset=data, eval_dataset=data, callbacks=[Saved()])
        if own_state:
            train_loader.load_state_dict(json.loads((Path(folder) / f"{resume}.json").read_text()))
        trainer.train(resume_from_checkpoint=f"{folder}/checkpoint-{resume}" if resume else None)
        return seen, trainer.model.net.weight.tolist(), trainer

    def test_a_trainer_whose_loaders_are_ours(self):
        with tempfile.TemporaryDirectory() as folder:
            seen, _, trainer = self.train(folder, num_train_epochs=2)
            metrics = trainer.evaluate()
        expected = Loader(source(), BATCH, seed=3)
        self.assertEqual(seen, [x[:, 0].tolist() for _ in range(2) for x, _ in expected])
        self.assertIn("eval_loss", metrics)

    def test_a_trainer_that_goes_on_from_a_checkpoint(self):
        """Whether or not the program also loads the loader's own state."""
        for accumulated, stops in ((1, (1, 6, 8)), (4, (1, 2))):
            options = {"num_train_epochs": 3, "gradient_accumulation_steps": accumulated}
            with tempfile.TemporaryDirectory() as folder:
                whole, weights, _ = self.train(folder, **options)
                for stop in stops:
                    begun, _, _ = self.train(folder, stop=stop, **options)
                    for own_state in (False, True):
                        rest, end, _ = self.train(folder, resume=stop, own_state=own_state, **options)
                        self.assertEqual((begun + rest, end), (whole, weights))


if __name__ == "__main__":
    if "RANK" in os.environ:
        {"lightning": LightningTest, "accelerate": AccelerateTest}[sys.argv[1]].rank(sys.argv[2])
    else:
        unittest.main()
