"""Trains with packages/fitter, of which this program is only the caller: framework.py KIND."""

import sys

import fitter
import torch

KIND = sys.argv[1]


def save(model, path):
    torch.save({"model": model.state_dict(), "slow": fitter.Slow()}, path)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    seconds = 0.012 if KIND == "samples" else 0.0
    loader = torch.utils.data.DataLoader(fitter.Rows(seconds), batch_size=8)
    trainer = fitter.Trainer(
        between=0.02 if KIND == "between" else 0.0,
        save_every=7 if KIND == "saves" else 0,
        after_epoch=save if KIND == "epochs" else None,
    )
    trainer.fit(model, loader, 3 if KIND == "samples" else 12)


main()
