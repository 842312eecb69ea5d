"""The output of `unidle optimize` is read by each framework's own parser, if that is installed.

No framework is installed for this: missing ones are skipped by name.
"""

import contextlib
import importlib
import os
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

UNIDLE = os.path.join(os.environ["UNIDLE_BIN"], "unidle")
DEVICES = ("H100", "T4", "cpu")
PROFILES = ("balanced", "fast")
COMPOSER = "global_train_batch_size: 64\ndevice_train_microbatch_size: 16\nprecision: fp32\n"


def module(name):
    """The framework's module; skips the test if it is missing or does not start here."""
    try:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
            return importlib.import_module(name)
    except Exception as failure:  # frameworks raise various exceptions if a part of them is missing
        raise unittest.SkipTest(f"{name}: {failure}") from None


def read_yaml(path):
    with open(path) as file:
        return module("yaml").safe_load(file)


class FrameworkWords(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="unidle-words-")
        self.addCleanup(shutil.rmtree, self.folder)

    def edited(self, name, text):
        """Paths of the original file, and of the advised one for each device and profile."""
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        yield path, None
        for device in DEVICES:
            for profile in PROFILES:
                output = os.path.join(self.folder, f"{device}-{profile}-{name}")
                command = [
                    UNIDLE,
                    "optimize",
                    path,
                    "-o",
                    output,
                    "--device",
                    device,
                    "--cpus",
                    "16",
                    "--profile",
                    profile,
                ]
                done = subprocess.run(command, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                if os.path.exists(output):
                    yield output, device

    def words(self, name, text, read):
        """`read` accepts every edit of the file; returns its results by device."""
        said = {}
        for path, device in self.edited(name, text):
            with self.subTest(file=os.path.basename(path)):
                said[device] = read(path)
        return said

    def test_composer(self):
        precision = module("composer.core").Precision
        text = COMPOSER + "max_duration: 100ba\n"
        said = self.words("train.yaml", text, lambda path: precision(read_yaml(path)["precision"]).value)
        self.assertEqual((said["H100"], said["T4"]), ("amp_bf16", "amp_fp16"))

    def test_olmo(self):
        config = module("olmo.config").TrainConfig
        torch = module("torch")
        text = COMPOSER + "max_duration: 1ep\nsave_interval_unsharded: 1000\ngen1_gc_interval: 1\n"
        said = self.words("olmo.yaml", text, lambda path: config.load(path).autocast_precision)
        self.assertEqual(said["H100"], torch.bfloat16)
        self.assertEqual(said["T4"], torch.float32, "it has no gradient scaler")

    def test_lightning(self):
        convert = module("lightning_fabric.connector")._convert_precision_to_unified_args
        for old in ("32", "32-true", "16-mixed", "bf16-true", "'32'"):
            text = (
                f"trainer:\n  max_epochs: 3\n  strategy: auto\n  log_every_n_steps: 1\n  precision: {old}\n"
            )
            said = self.words(
                "trainer.yaml", text, lambda path: convert(read_yaml(path)["trainer"]["precision"])
            )
            if old.strip("'").startswith("32"):
                self.assertEqual((said["H100"], said["T4"]), ("bf16-mixed", "16-mixed"), old)

    def test_nemo(self):
        convert = module("lightning_fabric.connector")._convert_precision_to_unified_args
        text = "exp_manager: {name: a}\ntrainer:\n  precision: 32\n  max_epochs: 3\n"
        said = self.words("nemo.yaml", text, lambda path: read_yaml(path)["trainer"]["precision"])
        self.assertEqual((said["H100"], said["T4"]), ("bf16-mixed", "16-mixed"))
        for word in said.values():
            convert(word)

    def test_transformers(self):
        transformers = module("transformers")
        arguments = module("transformers.training_args")

        def read(path):
            with contextlib.ExitStack() as stack:
                for asks in ("is_torch_bf16_gpu_available", "is_torch_tf32_available"):
                    if hasattr(arguments, asks):
                        stack.enter_context(mock.patch.object(arguments, asks, lambda *_: True))
                parser = transformers.HfArgumentParser(transformers.TrainingArguments)
                (parsed,) = parser.parse_yaml_file(path)
            return parsed.bf16, parsed.fp16, parsed.dataloader_num_workers

        head = "output_dir: out\nper_device_train_batch_size: 2\ngradient_accumulation_steps: 4\n"
        head += "logging_steps: 1\n"
        for rest in (
            "bf16: false\n",
            "fp16: false\nbf16: false\ntf32: false\n",
            "dataloader_prefetch_factor: 1\n"
            "dataloader_num_workers: 4\ndataloader_persistent_workers: false\ntorch_compile: false\n",
        ):
            said = self.words("args.yaml", head + rest, read)
            if "bf16" in rest:
                self.assertEqual(said["H100"][:2], (True, False), rest)

    def test_axolotl(self):
        schema = module("axolotl.utils.schemas.config").AxolotlInputConfig
        text = (
            "base_model: some/model\nmicro_batch_size: 1\ngradient_accumulation_steps: 4\nmax_steps: 10\n"
            "sequence_len: 512\nlogging_steps: 1\nbf16: false\ntf32: false\nlearning_rate: 0.0002\n"
            "datasets: [{path: some/data, type: alpaca}]\n"
        )
        said = self.words("axolotl.yaml", text, lambda path: schema(**read_yaml(path)).model_dump())
        self.assertTrue(said["H100"]["bf16"])
        for device, config in said.items():
            self.assertLessEqual(config["logging_steps"], config["max_steps"], device)

    def test_accelerate(self):
        load = module("accelerate.commands.config.config_args").load_config_from_file
        head = "compute_environment: LOCAL_MACHINE\nmachine_rank: 0\nnum_machines: 1\nnum_processes: 1\n"
        head += "main_training_function: main\n"

        def read(path):
            return str(load(path).mixed_precision)

        for word in ("'no'", "no"):
            text = f"{head}distributed_type: 'NO'\nuse_cpu: false\nmixed_precision: {word}\n"
            said = self.words("accelerate.yaml", text, read)
            self.assertEqual((said["H100"], said["T4"]), ("bf16", "fp16"))
        for cpu in (
            "distributed_type: MULTI_CPU\nuse_cpu: false\n",
            "distributed_type: 'NO'\nuse_cpu: true\n",
        ):
            said = self.words("accelerate.yaml", f"{head}{cpu}mixed_precision: 'no'\n", read)
            self.assertEqual(set(said.values()), {"no"}, cpu)

    def test_deepspeed(self):
        config = module("deepspeed.runtime.config").DeepSpeedConfig
        text = '{\n  "train_batch_size": 64,\n  "fp16": {"enabled": false},\n'
        text += '  "zero_optimization": {"stage": 0}\n}\n'

        def read(path):
            loaded = config(path)
            return loaded.float16_config.enabled, loaded.bfloat16_config.enabled

        said = self.words("ds_config.json", text, read)
        self.assertEqual(set(said.values()), {(False, False)}, "the program would have to cast its inputs")

    def test_opennmt(self):
        parser = module("onmt.utils.parse").ArgumentParser()
        module("onmt.opts").train_opts(parser)
        text = (
            "data: {corpus: {path_src: a, path_tgt: b}}\nsave_model: out\nsrc_vocab: s\ntgt_vocab: t\n"
            "train_steps: 1000\nmodel_dtype: fp32\nbatch_size: 32\naccum_count: [4]\nnum_workers: 0\n"
        )
        said = self.words(
            "opennmt.yaml", text, lambda path: parser.parse_known_args(["-config", path])[0].model_dtype
        )
        self.assertEqual((said["H100"], said["T4"]), ("fp32", "fp16"))

    def test_litgpt(self):
        jsonargparse = module("jsonargparse")
        text = "out_dir: out\nprecision: {}\ntrain:\n  micro_batch_size: 1\n  log_interval: 1\n"
        for name, needs, fp16 in (
            ("litgpt.finetune.lora", "checkpoint_dir: some/model\nlora_r: 8\n", "16-mixed"),
            ("litgpt.pretrain", "model_name: a\ninitial_checkpoint_dir: null\ntokenizer_dir: b\n", None),
        ):
            parser = jsonargparse.ArgumentParser()
            parser.add_function_arguments(module(name).setup)
            for old in ("32-true", "bf16-mixed", "bf16-true"):
                said = self.words(
                    "litgpt.yaml", needs + text.format(old), lambda path: parser.parse_path(path).precision
                )
                self.assertEqual(said["H100"], "bf16-mixed" if old == "32-true" else old, name)
                self.assertEqual(said["T4"], old if old == "bf16-true" else fp16 or old, name)

    def test_espnet(self):
        parser = module("espnet2.tasks.asr").ASRTask.get_parser()
        text = (
            "batch_type: folded\nbatch_size: 8\naccum_grad: 2\nnum_workers: 0\nuse_amp: false\n"
            "train_dtype: float32\nkeep_nbest_models: 3\n"
        )
        output = ["--output_dir", "out"]
        said = self.words(
            "espnet.yaml", text, lambda path: parser.parse_args(["--config", path, *output]).num_workers
        )
        self.assertEqual(said["H100"], 15)

    def test_speechbrain(self):
        config = module("speechbrain.utils.autocast").AMPConfig
        text = "epoch_counter: a\ncheckpointer: b\nnumber_of_epochs: 3\nprecision: fp32\nnum_workers: 0\n"
        said = self.words(
            "hparams.yaml", text, lambda path: str(config.from_name(read_yaml(path)["precision"]).dtype)
        )
        self.assertEqual((said["H100"], said["T4"]), ("torch.bfloat16", "torch.float16"))

    def test_torchtune(self):
        get_dtype = module("torchtune.training").get_dtype
        torch = module("torch")
        text = (
            "model:\n  _component_: torchtune.models.llama3.llama3_8b\nbatch_size: 2\n"
            "gradient_accumulation_steps: 8\ndtype: fp32\ncompile: False\noptimizer:\n"
            "  _component_: torch.optim.AdamW\n  fused: False\n"
        )
        cpu = torch.device("cpu")
        said = self.words("recipe.yaml", text, lambda path: get_dtype(read_yaml(path)["dtype"], cpu))
        self.assertEqual(said["H100"], torch.bfloat16)
        self.assertEqual(said["T4"], torch.float32, "recipes refuse fp16")

    def test_mmengine(self):
        config = module("mmengine.config").Config
        wrappers = module("mmengine.registry").OPTIM_WRAPPERS
        module("mmengine.optim")
        text = (
            "train_dataloader = dict(batch_size=2, num_workers=0, persistent_workers=False)\n"
            "optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.01))\n"
            "train_cfg = dict(by_epoch=True, max_epochs=2)\nenv_cfg = dict(cudnn_benchmark=False)\n"
        )

        def read(path):
            loaded = config.fromfile(path)
            return wrappers.get(loaded.optim_wrapper.type).__name__

        copied = {}
        for path, device in self.edited("config.py", text):
            good = os.path.join(self.folder, os.path.basename(path).replace("-", "_"))
            shutil.copy(path, good) if good != path else None  # mmengine imports the file by its name
            copied[device] = read(good)
        self.assertEqual(copied["H100"], "AmpOptimWrapper")

    def test_ultralytics(self):
        get_cfg = module("ultralytics.cfg").get_cfg
        text = "imgsz: 640\nlr0: 0.01\nbatch: 16\nworkers: 0\namp: False\n"
        said = self.words("yolo.yaml", text, lambda path: get_cfg(overrides=read_yaml(path)).amp)
        self.assertTrue(said["H100"])

    def test_torchtitan(self):
        typing = module("typing")
        training = module("torchtitan.config.configs").TrainingConfig
        takes = typing.get_args(typing.get_type_hints(training)["mixed_precision_param"])
        text = "[job]\ndump_folder = 'out'\n[training]\nlocal_batch_size = 1\n"
        text += "mixed_precision_param = 'float32'\n"

        def read(path):
            with open(path, "rb") as file:
                return module("tomllib").load(file)["training"]["mixed_precision_param"]

        said = self.words("titan.toml", text, read)
        self.assertEqual(said["H100"], "bfloat16")
        self.assertLessEqual(set(said.values()), set(takes))

    def test_numbers_of_yaml(self):
        """A value that PyYAML reads as the same number is the same setting."""
        yaml = module("yaml")
        for text in ("010", "1_024", "0x10", "0b11", "1:30", "+8", "08", "1_0:30", "0", "0_7", "00"):
            path = os.path.join(self.folder, "c.yaml")
            with open(path, "w") as file:
                file.write(f"num_workers: {text}\n")
            command = [UNIDLE, "knobs", "recognize", path, "--format", "json"]
            done = subprocess.run(command, capture_output=True, text=True)
            (found,) = module("json").loads(done.stdout)["files"][0]["knobs"]
            self.assertEqual(int(found["means"]), int(yaml.safe_load(text)), text)


if __name__ == "__main__":
    unittest.main()
