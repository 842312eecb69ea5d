"""A script with batches from unidle.data.Loader is observed like one with torch's DataLoader."""

import json
import os
import subprocess
import sys
import unittest
from unittest import mock

import package
import run_case
from run_case import HAS_TORCH, HERE, UNIDLE

PROGRAM = os.path.join(HERE, "programs", "from_package.py")

try:
    import PIL  # noqa: F401
except ImportError:
    raise unittest.SkipTest("needs Pillow") from None


@unittest.skipUnless(
    HAS_TORCH and package.LIBRARY.exists(), "there is no torch, or no library of the package"
)
class PackageLoaderTest(run_case.RunCase):
    def trained(self, kind, workers, epochs, options=()):
        """Its output is the same bare and observed; returns the last notes of its loader."""
        folder = str(package.BUILD / "share" / "unidle" / "python")
        command = (sys.executable, PROGRAM, folder, kind, str(workers), str(epochs))
        bare, done = self.bare(*command), self.observed(*command, options=options)
        self.record_folder = max(os.listdir(self.folder))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, bare.stdout, bare.stderr))
        self.assertEqual({note["status"] for note in self.record.notes("shim")}, {"on"})
        self.loader = self.record.notes("loader")[-1]
        self.samples = self.record.notes("samples")[-1]
        with open(PROGRAM) as file:
            line = next(number for number, text in enumerate(file, 1) if "data.Loader(" in text)
        self.assertTrue(self.loader["where"].endswith("from_package.py:%d" % line), self.loader)
        told = [self.loader[name] for name in ("workers", "batch_size", "use", "epochs")]
        self.assertEqual(told, [workers if not options else 2, 8, "train", epochs])

    def share_of_input(self):
        return self.record.one("select 1.0 * sum(input_ns) / sum(duration_ns) from steps where idx > 4")

    def findings(self):
        path = os.path.join(self.folder, self.record_folder)
        told = subprocess.run([UNIDLE, "diagnose", "--format", "json", path], capture_output=True, text=True)
        return {finding["id"]: finding for finding in json.loads(told.stdout)["findings"]}

    def test_pictures_that_cost_more_than_the_step(self):
        self.trained("pictures", 0, 40)
        self.assertEqual(self.record.rows("select count(*), sum(samples) from steps"), [(160, 1280)])
        self.assertGreater(self.share_of_input(), 0.5)
        self.assertEqual((self.samples["count"], self.loader["made_with"]), (1280, "unidle"))
        self.assertGreater(self.samples["cpu_seconds"], 0)
        read, decode, augment, gather = self.samples["stages"]
        self.assertGreater(min(read, decode, augment, gather), 0)
        self.assertGreater(decode + augment, read + gather)
        told = [
            text for one in self.findings().values() for text in one["evidence"] if "spend their time" in text
        ]
        self.assertTrue(told)
        finding = self.findings()["loader-no-workers"]
        fix = next(fix for fix in finding["fixes"] if fix["knob"] == "loader.workers")
        self.assertIn("unidle.data.Loader(..., workers=", fix["how"])
        self.assertNotIn("cache.features", [fix["knob"] for fix in finding["fixes"]])

    def test_workers_are_threads_whose_work_is_counted(self):
        self.trained("pictures", 1, 20)
        self.assertGreater(self.share_of_input(), 0.5)
        self.assertEqual((self.samples["count"], self.loader["prefetch_factor"]), (640, 2))
        train_s = self.record.one("select sum(duration_ns) from steps") * 1e-9
        self.assertGreater(self.samples["seconds_total"], 0.5 * train_s)  # busy while the step waits

    def test_a_step_that_costs_more_than_its_rows(self):
        self.trained("rows", 1, 1)
        self.assertLess(self.share_of_input(), 0.1)
        self.assertFalse([name for name in self.findings() if name.startswith(("loader-", "dataset-slow"))])

    def test_a_data_set_of_the_programs_own(self):
        for workers in (0, 2):
            with self.subTest(workers):
                self.trained("wrapped", workers, 15)
                self.assertGreaterEqual(self.samples["count"], 960 if workers == 0 else 900)
                self.assertEqual(self.loader["made_with"], "unidle.wrap")
                self.assertEqual(self.loader["dataset"], "Hashed")

    def test_settings_that_a_running_program_can_be_given(self):
        asked = {"loader.workers": "2", "loader.prefetch_factor": "3", "loader.pin_memory": "true"}
        options = [word for knob, value in asked.items() for word in ("--apply", "%s=%s" % (knob, value))]
        self.trained("pictures", 1, 5, options)
        told = {note["knob"]: note["status"] for note in self.record.notes("apply")}
        self.assertEqual(
            told,
            {"loader.workers": "taken", "loader.prefetch_factor": "taken", "loader.pin_memory": "refused"},
        )


class OptionsTest(unittest.TestCase):
    def test_what_was_given_by_position_stays(self):
        sys.path.insert(0, os.path.join(HERE, "..", "shim"))
        from _unidle_shim.knobs import package_options

        from unidle.data import Loader

        actuators = mock.Mock(asked={"loader.workers": "2", "loader.prefetch_factor": "3"})
        names = package_options.by_position(Loader)
        position = names.index("workers")
        for given, refused in ((position, []), (position + 1, ["loader.workers"])):
            actuators.reset_mock()
            # A source, then all arguments before the workers.
            kwargs = package_options.asked_of(actuators, names, None, (0,) * given, {})
            self.assertEqual(kwargs, {"prefetch": 3} if refused else {"workers": 2, "prefetch": 3})
            self.assertEqual([call.args[0] for call in actuators.say.call_args_list], refused)


if __name__ == "__main__":
    unittest.main()
