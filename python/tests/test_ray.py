"""Ray Train: workers under `unidle run`, and with unidle.integrations.ray where nobody runs it."""

import json
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

import package
from run_case import UNIDLE, Record, environment

PACKAGE = sys.path[0]  # ray puts its own there
package.needs("torch", "ray.train", "ray.data")

PROGRAM = """
    import sys, threading, time
    import ray, ray.data, ray.train, torch
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer, prepare_data_loader, prepare_model
    from unidle.integrations.ray import observed

    def slowly(batch):
        time.sleep(0.1)
        return {"x": (batch["id"] / 640).astype("float32")}

    def model_and_optimizer():
        torch.manual_seed(0)
        torch.set_num_threads(1)
        model = prepare_model(torch.nn.Linear(1, 1))
        return model, torch.optim.SGD(model.parameters(), 0.01)

    def step(model, optimizer, x):
        optimizer.zero_grad()
        (model(x) - 1).square().mean().backward()
        optimizer.step()

    def from_loader(config):
        model, optimizer = model_and_optimizer()
        rows = torch.utils.data.TensorDataset(torch.arange(320.0).reshape(320, 1) / 320)
        for epoch in range(2):
            for number, (x,) in enumerate(prepare_data_loader(torch.utils.data.DataLoader(rows, 8))):
                if config["fails"] and ray.train.get_context().get_world_rank() == 1 and number == 5:
                    raise ValueError("broken")
                step(model, optimizer, x)
            ray.train.report({"epoch": epoch})

    def from_data(config):
        model, optimizer = model_and_optimizer()
        for epoch in range(2):
            batches = ray.train.get_dataset_shard("train").iter_torch_batches(batch_size=8)
            for batch in batches:
                step(model, optimizer, batch["x"].reshape(-1, 1))

    def main(loop, fails, **more):
        trainer = TorchTrainer(
            loop, train_loop_config={"fails": fails}, scaling_config=ScalingConfig(num_workers=2),
            torch_config=TorchConfig(backend="gloo"), run_config=RunConfig(storage_path=sys.argv[1]), **more)
        trainer.fit()
        print("done")
"""
FROM_DATA = (
    "main(from_data, False, datasets={'train': ray.data.range(640).map_batches(slowly, batch_size=8)})"
)


class RayTest(unittest.TestCase):
    def setUp(self):
        # Short, because Ray makes sockets there.
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def ran(self, call, *begin, cpus=3):
        program = textwrap.dedent(PROGRAM) + f"ray.init(num_cpus={cpus}, include_dashboard=False)\n{call}\n"
        (self.folder / "train.py").write_text(program)
        given = environment(
            PYTHONPATH=PACKAGE,
            HOME=str(self.folder),
            RAY_TMPDIR=str(self.folder),
            RAY_USAGE_STATS_ENABLED="0",
        )
        return subprocess.run(
            [*begin, sys.executable, "train.py", self.folder / "store"],
            cwd=self.folder,
            env=given,
            capture_output=True,
            text=True,
        )

    def record(self, steps):
        """The only record, which holds `steps` of each rank."""
        (folder,) = self.folder.glob("record*")
        record = Record(folder)
        self.assertEqual(record.meta("problems"), [])
        self.assertEqual([note for note in record.notes("shim") if note["status"] == "off"], [])
        parallel = [(note["rank"], note["world_size"], note["kind"]) for note in record.notes("parallel")]
        self.assertEqual(sorted(set(parallel)), [(0, 2, "ddp"), (1, 2, "ddp")])
        counts = record.rows("select count(*) from steps group by process")
        self.assertEqual(counts, [(steps,), (steps,)])
        return record

    def test_workers_of_a_recorded_program_wait_for_ray_data(self):
        done = self.ran(FROM_DATA, UNIDLE, "run", "-o", self.folder / "record", "--")
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"), done.stderr)
        self.record(79)  # Ray kills its workers, and nothing says then that the last step is over
        said = subprocess.run(
            [UNIDLE, "diagnose", self.folder / "record", "--format", "json"],
            env=environment(),
            capture_output=True,
            text=True,
        )
        answer = json.loads(said.stdout)
        self.assertEqual(answer["verdict"], "input-bound", said.stdout)
        self.assertIn("materialize()", said.stdout)

    def test_observed_workers_share_a_record(self):
        done = self.ran("main(observed(from_loader, 'record'), False)")
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"), done.stderr)
        self.assertEqual(done.stderr.count("unidle: recording"), 1, done.stderr)
        record = self.record(40)
        self.assertEqual(record.meta("outcome"), "completed")
        self.assertEqual(record.meta("command")[1], "train.py")
        calls = "max(json_extract(body, '$.where_calls'))"
        reported = record.rows(f"select {calls} from notes where body like '%\"logging\"%' group by process")
        self.assertEqual(reported, [(2,), (2,)])

    def test_trainers_at_once_that_share_the_function_have_records_of_their_own(self):
        both = """
            loop = observed(from_loader, 'record')
            at_once = [threading.Thread(target=main, args=(loop, False)) for _ in range(2)]
            for each in at_once: each.start()
            for each in at_once: each.join()
        """
        done = self.ran(textwrap.dedent(both), cpus=6)
        self.assertEqual((done.returncode, done.stdout.count("done")), (0, 2), done.stderr)
        folders = sorted(self.folder.glob("record*"))
        self.assertEqual(len(folders), 2, done.stderr)
        for folder in folders:
            counts = Record(folder).rows("select count(*) from steps group by process")
            self.assertEqual(counts, [(40,), (40,)])
            self.assertEqual(Record(folder).meta("outcome"), "completed")

    def test_a_failing_worker_fails_as_without_us(self):
        done = self.ran("main(observed(from_loader, 'record'), True)")
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn("ValueError: broken", done.stderr)
        record = Record(self.folder / "record")
        self.assertEqual(record.meta("outcome"), "failed")
        self.assertIn("ValueError: broken", [note["message"] for note in record.notes("exception")])


if __name__ == "__main__":
    unittest.main()
