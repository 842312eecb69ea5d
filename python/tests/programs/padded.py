"""Trains on sequences padded to a fixed length; prints what the model and the test got, and the weights' sum.

padded.py FORM: dict, tuple, pair (a dict and labels), workers (a dict, made in workers), spawned (these are
not forked), inverted (the mask's ones are padding), full (no padding), left (padding at the left), copied
(labels are the tokens), fixed (another tensor has the length), next (one has nearly the length), lists (lists
have it), tags (labels of tokens), tokens (the model has a result for each token), objects (the same, in an
object), unmasked (the model gets no mask)."""

import sys
from types import SimpleNamespace

import torch
from torch.utils.data import DataLoader, Dataset

LENGTH, FORM = 40, sys.argv[1]


class Texts(Dataset):
    def __init__(self, samples):
        draw = torch.Generator().manual_seed(3)
        longest = [LENGTH] * samples if FORM == "full" else [3 + one % 11 for one in range(samples)]
        self.rows = [torch.randint(1, 50, (one,), generator=draw) for one in longest]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row, at_left = self.rows[index], FORM == "left"
        pad = torch.zeros(LENGTH - len(row), dtype=torch.long)
        tokens = torch.cat([pad, row] if at_left else [row, pad])
        mask, label = (tokens > 0).long(), index % 2
        if FORM == "tuple":
            return tokens, mask, label
        if FORM == "pair":
            return {"input_ids": tokens, "attention_mask": mask}, label
        batch = {"input_ids": tokens, "attention_mask": mask, "y": label}
        if FORM == "inverted":
            batch["padding_mask"] = ~batch.pop("attention_mask").bool()
        if FORM == "lists":
            batch["words"] = ["word"] * LENGTH
        if FORM == "fixed":
            batch["weights"] = torch.ones(LENGTH, 2)
        if FORM == "next":
            batch["next"] = tokens[1:]
        if FORM == "tags":
            batch["tags"] = tokens % 2
        return batch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(50, 8), torch.nn.Linear(8, 2)

    def forward(self, tokens, attention_mask, labels=None):
        seen.append(tuple(tokens.shape))
        if attention_mask is None:
            return self.head(self.embed(tokens).mean(1))
        if FORM == "tokens":
            return self.head(self.embed(tokens))
        if FORM == "objects":
            return SimpleNamespace(scores=self.head(self.embed(tokens)))
        weights = attention_mask[..., None].float()
        return self.head((self.embed(tokens) * weights).sum(1) / weights.sum(1))


class Inverted(Model):
    def forward(self, tokens, padding_mask):
        return super().forward(tokens, ~padding_mask)


def parts(batch):
    if FORM == "pair":
        batch = dict(batch[0], y=batch[1])
    if FORM == "inverted":
        return batch["input_ids"], batch["padding_mask"], batch["y"]
    return batch if FORM == "tuple" else (batch["input_ids"], batch["attention_mask"], batch["y"])


def output(tokens, mask):
    if FORM == "unmasked":
        return model(tokens, None)
    if FORM == "copied":
        return model(tokens, mask, tokens)
    if FORM == "objects":
        return model(tokens, mask).scores.mean(1)
    return model(tokens, mask).mean(1) if FORM == "tokens" else model(tokens, mask)


if __name__ == "__main__":
    torch.manual_seed(0)
    seen = []
    model = Inverted() if FORM == "inverted" else Model()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    workers = {
        "workers": {"num_workers": 2},
        "spawned": {"num_workers": 1, "multiprocessing_context": "spawn"},
    }
    loader = DataLoader(Texts(64), batch_size=4, shuffle=True, **workers.get(FORM, {}))
    test = DataLoader(Texts(8), batch_size=4)
    for epoch in range(2):
        for batch in loader:
            tokens, mask, y = parts(batch)
            out = output(tokens, mask)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(out, y).backward()
            optimizer.step()
    trained = seen[:]
    seen.clear()
    with torch.no_grad():
        for batch in [*test, *loader]:
            model(*parts(batch)[:2])
    print(sorted({width for _, width in trained}), sorted({width for _, width in seen}))
    print(float(sum(parameter.double().abs().sum() for parameter in model.parameters())))
