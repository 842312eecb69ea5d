"""unidle.integrations: callbacks of frameworks that record a training."""

import importlib.util
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

import package
from run_case import HAS_TORCH, Record, environment

package.needs()

ROWS = """
    import torch
    torch.manual_seed(0)
    class Rows(torch.utils.data.Dataset):
        def __len__(self): return 32
        def __getitem__(self, row): return ITEM
"""
LIGHTNING = """
    import lightning.pytorch as lightning
    from unidle.integrations.lightning import Observe
    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)
        def training_step(self, batch, number): return (self.layer(batch) - 1).square().mean()
        def validation_step(self, batch, number): self.layer(batch)
        def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.1)
    loader = torch.utils.data.DataLoader(Rows(), 4)
    lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, callbacks=[Observe("record")]
    ).fit(Model(), loader, loader)
"""
TRANSFORMERS = """
    import transformers
    from unidle.integrations.transformers import Observe
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)
        def forward(self, x, labels=None):
            return {"loss": (self.layer(x) - labels).square().mean()}
    options = transformers.TrainingArguments("out", per_device_train_batch_size=4, num_train_epochs=2,
        report_to=[], disable_tqdm=True, save_strategy="no", use_cpu=True)
    transformers.Trainer(Model(), options, train_dataset=Rows(), callbacks=[Observe("record")]).train()
"""
ACCELERATE = """
    import accelerate
    from unidle.integrations.accelerate import Observe
    accelerator = accelerate.Accelerator(cpu=True, log_with=Observe("record"))
    accelerator.init_trackers("test", {"colour": "red", 7: "seven"})
    model = torch.nn.Linear(4, 1)
    model, optimizer, loader = accelerator.prepare(
        model, torch.optim.SGD(model.parameters(), 0.1), torch.utils.data.DataLoader(Rows(), 4))
    for _ in range(2):
        for batch in loader:
            optimizer.zero_grad()
            loss = (model(batch) - 1).square().mean()
            accelerator.backward(loss)
            optimizer.step()
            accelerator.log({"height": loss.item()})
    accelerator.end_training()
"""


@unittest.skipUnless(HAS_TORCH, "needs torch")
class IntegrationsTest(unittest.TestCase):
    def recorded(self, framework, text, item="torch.full((4,), row / 32)"):
        if importlib.util.find_spec(framework) is None:
            raise unittest.SkipTest(f"needs {framework}")
        folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        program = textwrap.dedent(ROWS.replace("ITEM", item)) + textwrap.dedent(text) + "print('done')\n"
        (folder / "program.py").write_text(program)
        done = subprocess.run(
            [sys.executable, "program.py"],
            cwd=folder,
            env=environment(PYTHONPATH=sys.path[0]),
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("unidle: recording record", done.stderr)
        record = Record(folder / "record")
        self.assertEqual((record.meta("outcome"), record.meta("problems")), ("completed", []))
        self.assertEqual([note for note in record.notes("shim") if note["status"] == "off"], [])
        self.assertEqual(record.one("select count(*) from steps"), 16)
        notes = {note["name"]: note["value"] for note in record.notes("noted")}
        notes.update(record.rows("select name, value from metrics order by t_ns"))
        return record, notes

    def test_lightning(self):
        record, notes = self.recorded("lightning", LIGHTNING)
        self.assertEqual(notes["strategy"], "SingleDeviceStrategy")
        self.assertEqual(notes["accumulate_grad_batches"], 1)
        self.assertGreaterEqual(record.one("select count(*) from spans where kind='validate'"), 2)

    def test_transformers(self):
        item = "{'x': torch.full((4,), row / 32), 'labels': torch.ones(1)}"
        _, notes = self.recorded("transformers", TRANSFORMERS, item)
        self.assertEqual((notes["per_device_train_batch_size"], notes["save_strategy"]), (4, "no"))

    def test_accelerate(self):
        record, notes = self.recorded("accelerate", ACCELERATE)
        self.assertEqual((notes["colour"], notes["7"]), ("red", "seven"))
        self.assertEqual(record.one("select count(*) from metrics where name='height'"), 16)

    def test_the_package_imports_no_framework(self):
        text = (
            "import sys, unidle.integrations; print({'torch', 'lightning', 'accelerate'} & set(sys.modules))"
        )
        done = subprocess.run(
            [sys.executable, "-c", text],
            env=environment(PYTHONPATH=sys.path[0]),
            capture_output=True,
            text=True,
        )
        self.assertEqual((done.stdout, done.returncode), ("set()\n", 0), done.stderr)


if __name__ == "__main__":
    unittest.main()
