"""Training loops of other kinds, and of frameworks; prints its own counts. See test_loops.py."""

import json
import os
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
done = {"steps": 0, "samples": 0, "calls": 0}
x, y = torch.randn(640, 16), torch.randn(640, 1)


def network():
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))


def gan():
    generator, critic = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 16)), network()
    of_generator, of_critic = (
        torch.optim.Adam(generator.parameters(), 1e-3),
        torch.optim.Adam(critic.parameters(), 1e-3),
    )
    judge = nn.BCEWithLogitsLoss()
    for _ in range(2):
        for real, _ in DataLoader(TensorDataset(x, y), 16):
            ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
            of_critic.zero_grad()
            judge(critic(real), ones).backward()
            made = generator(torch.randn(len(real), 4))
            judge(critic(made.detach()), zeros).backward()
            of_critic.step()
            of_generator.zero_grad()
            judge(critic(made), ones).backward()
            of_generator.step()
            done["steps"] += 1
            done["samples"] += len(real)


def two_loaders():
    """A GAN whose generator and critic have their own loaders."""
    generator, critic = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 16)), network()
    of_generator, of_critic = (
        torch.optim.Adam(generator.parameters(), 1e-3),
        torch.optim.Adam(critic.parameters(), 1e-3),
    )
    judge = nn.BCEWithLogitsLoss()
    noise = DataLoader(TensorDataset(torch.randn(640, 4)), 16)
    for _ in range(2):
        made_of = iter(noise)
        for real, _ in DataLoader(TensorDataset(x, y), 16):
            ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
            of_critic.zero_grad()
            judge(critic(real), ones).backward()
            judge(critic(torch.randn(len(real), 16)), zeros).backward()
            of_critic.step()
            (seed,) = next(made_of)
            of_generator.zero_grad()
            judge(critic(generator(seed)), ones).backward()
            of_generator.step()
            done["steps"] += 1
            done["samples"] += len(real) + len(seed)


def shows_samples():
    """Another loader over the same samples, one by one, whose batches no model gets."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    train, show = DataLoader(TensorDataset(x, y), 16, shuffle=True), DataLoader(TensorDataset(x, y), 1)
    for _ in range(2):
        for real, _ in show:
            real.mean()
        for real, wanted in train:
            optimizer.zero_grad()
            (model(real) - wanted).square().mean().backward()
            optimizer.step()
            done["steps"] += 1
            done["samples"] += len(real)


def two_losses():
    """Two backward passes for one batch, which the program makes itself."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    for step in range(20):
        real, wanted = x[step * 16 : step * 16 + 16], y[step * 16 : step * 16 + 16]
        made = model(real)
        optimizer.zero_grad()
        made.square().mean().backward(retain_graph=True)
        (made - wanted).square().mean().backward()
        optimizer.step()
        done["steps"] += 1
        done["samples"] += len(real)


def closure():
    net = network()
    optimizer = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=4)
    for a, b in DataLoader(TensorDataset(x, y), 32):

        def again():
            done["calls"] += 1
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(net(a), b)
            loss.backward()
            return loss

        optimizer.step(again)
        done["steps"] += 1
        done["samples"] += len(a)


class Parcels(Dataset):
    """Each item is a whole batch: 20 of 32 samples."""

    def __len__(self):
        return 20

    def __getitem__(self, index):
        rows = slice(32 * index, 32 * index + 32)
        return x[rows], torch.arange(32).repeat(26, 1), y[rows]


def first(items):
    return items[0]


def parcels(loader):
    model, loss = network(), nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for _ in range(2):
        for inputs, _, targets in loader:
            optimizer.zero_grad()
            loss(model(inputs), targets).backward()
            optimizer.step()
            done["steps"] += 1
            done["samples"] += len(inputs)


def items_are_batches():
    parcels(DataLoader(Parcels(), batch_size=None, shuffle=True))


def first_item_is_the_batch():
    parcels(DataLoader(Parcels(), batch_size=1, collate_fn=first, num_workers=2))


def evaluates_training_set():
    """After each epoch, and once before the first."""
    model, loss = network(), nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    train, held_out = (
        DataLoader(TensorDataset(x[rows], y[rows]), 32) for rows in (slice(96, 640), slice(96))
    )

    def evaluate(loader):
        model.eval()
        with torch.no_grad():
            total = sum(loss(model(inputs), targets) for inputs, targets in loader)
        model.train()
        done["calls"] += 1
        return total

    evaluate(train)
    for _ in range(4):
        for inputs, targets in train:
            optimizer.zero_grad()
            loss(model(inputs), targets).backward()
            optimizer.step()
            done["steps"] += 1
            done["samples"] += len(inputs)
        evaluate(train)
        evaluate(held_out)


def ranks():
    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DistributedSampler

    distributed.init_process_group("gloo")
    data = TensorDataset(x, y)
    net = network()
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for a, b in DataLoader(data, 8, sampler=DistributedSampler(data)):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(a), b).backward()
        optimizer.step()
        done["steps"] += 1
        if done["steps"] == 30:
            calls = {
                kind.__name__: kind.__dict__.get("__call__")
                for kind in (nn.Module, nn.Sequential, nn.Linear, DistributedDataParallel)
            }
            patched = [
                name
                for name, call in calls.items()
                if call is not None and (type(call).__name__ == "_ClassCall" or hasattr(call, "__wrapped__"))
            ]
            os.write(
                1, ("%d %s\n" % (distributed.get_rank(), json.dumps(patched))).encode()
            )  # by one call: two ranks must not mix
    distributed.destroy_process_group()


def lightning():
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = network()

        def training_step(self, batch, index):
            done["steps"] += 1
            done["samples"] += len(batch[0])
            return nn.functional.mse_loss(self.net(batch[0]), batch[1])

        def validation_step(self, batch, index):
            self.log("held_out", nn.functional.mse_loss(self.net(batch[0]), batch[1]))

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.01)

    trainer = lightning.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(Module(), DataLoader(TensorDataset(x, y), 16), DataLoader(TensorDataset(x, y), 64))


def transformers():
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

    class Texts(torch.utils.data.Dataset):
        def __len__(self):
            return 96

        def __getitem__(self, index):
            ids = torch.arange(index, index + 12) % 50
            return {"input_ids": ids, "labels": ids}

    class Count(TrainerCallback):
        def on_step_end(self, *args, **kwargs):
            done["steps"] += 1
            done["samples"] += 8

    model = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_embd=16, n_layer=1, n_head=2, n_positions=16))
    arguments = TrainingArguments(
        "out",
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        num_train_epochs=2,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        eval_strategy="epoch",
        logging_steps=5,
        disable_tqdm=True,
    )
    Trainer(model, arguments, train_dataset=Texts(), eval_dataset=Texts(), callbacks=[Count()]).train()


MODES = (
    gan,
    two_loaders,
    shows_samples,
    two_losses,
    closure,
    items_are_batches,
    first_item_is_the_batch,
    evaluates_training_set,
    ranks,
    lightning,
    transformers,
)
{mode.__name__: mode for mode in MODES}[sys.argv[1]]()
if len(sys.argv) > 2:
    with open(sys.argv[2], "w") as file:
        json.dump(done, file)
