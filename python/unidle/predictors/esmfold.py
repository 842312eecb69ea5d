"""Structures of proteins by ESMFold (Lin et al., Science 379, 2023, 1123-1130), for the feature cache:

    unidle cache warm features --inputs proteins.fasta -- python -m unidle.predictors.esmfold

It needs torch, transformers and the weights (8.4 GB), and for most sequences a GPU of 16 GB or more. Nothing
is downloaded unless --download says so. For a sequence of L residues:

    backbone    float32 [L, 4, 3]  N, CA, C and O, in angstrom
    positions   float32 [L, 3]     of CA, centred
    distances   float32 [L, L]     between CA
    contacts    uint8 [L, L]       1 where that is below 8 angstrom
    confidence  float32 [L]        pLDDT of CA, 0 to 100

So what reads the features of the predictor `peptide` reads these too.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from unidle.predictors import Predict, Refused, leave, serve

MODEL = "facebook/esmfold_v1"
LAYOUT = "1"  # change it when the arrays above change
RESIDUES = frozenset(b"ACDEFGHIKLMNPQRSTVWYX")
CONTACT = 8.0  # angstrom
CA = 1  # of N, CA, C, O, the first of the model's 14 atoms


def load(name: str, download: bool, device: str) -> tuple[Any, Any]:
    """Returns tokenizer and model; if one is missing, ends the program and says what to do."""
    try:
        import torch
        import transformers
    except ImportError as error:
        leave(f"esmfold: {error}; install it: pip install torch transformers accelerate")
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, local_files_only=not download)
        model = transformers.EsmForProteinFolding.from_pretrained(name, local_files_only=not download)
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        leave(
            f"esmfold: no weights of {name} on this machine ({reason}); get them with --download (8.4 GB), or"
            " name a folder that has them with --model FOLDER"
        )
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return tokenizer, model.eval().to(device)


def version_of(model: Any) -> str:
    """Identifies the model by its weights, regardless of their origin."""
    import torch

    hashed = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        hashed.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        hashed.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return f"{LAYOUT}-{hashed.hexdigest()}"


class Folding:
    """Folds batches of sequences."""

    def __init__(self, tokenizer: Any, model: Any) -> None:
        self.tokenizer, self.model = tokenizer, model

    def __call__(self, inputs: Sequence[bytes]) -> Sequence[Mapping[str, Any] | Refused]:
        answers: list[Mapping[str, Any] | Refused] = [Refused("is no sequence of amino acids")] * len(inputs)
        good = [place for place, sequence in enumerate(inputs) if sequence and RESIDUES.issuperset(sequence)]
        if good:
            for place, answer in zip(good, self.fold([inputs[place].decode() for place in good])):
                answers[place] = answer
        return answers

    def fold(self, sequences: list[str]) -> list[Mapping[str, Any] | Refused]:
        """Splits the batch in halves when memory runs out: loading the model again would take minutes."""
        import torch

        try:
            return self.fold_together(sequences)
        except torch.cuda.OutOfMemoryError:
            if len(sequences) == 1:
                return [Refused(f"{len(sequences[0])} residues need more memory than the device has")]
        torch.cuda.empty_cache()
        half = len(sequences) // 2
        return self.fold(sequences[:half]) + self.fold(sequences[half:])

    def fold_together(self, sequences: list[str]) -> list[Mapping[str, Any] | Refused]:
        import torch

        device = next(self.model.parameters()).device
        tokens = self.tokenizer(sequences, return_tensors="pt", padding=True, add_special_tokens=False)
        with torch.no_grad():
            folded = self.model(**{name: value.to(device) for name, value in tokens.items()})
        atoms = folded["positions"][-1].float().cpu()  # after the last block: [sequences, residues, 14, 3]
        confidences = 100 * folded["plddt"][..., CA].float().cpu()
        return [
            features(atoms[row, : len(sequence), :4], confidences[row, : len(sequence)])
            for row, sequence in enumerate(sequences)
        ]


def features(backbone: Any, confidence: Any) -> Mapping[str, Any]:
    import torch

    positions = backbone[:, CA]
    distances = torch.linalg.vector_norm(positions[:, None] - positions[None], dim=2)
    return {
        "backbone": backbone,
        "positions": positions - positions.mean(0),
        "distances": distances,
        "contacts": (distances < CONTACT).to(torch.uint8),
        "confidence": confidence,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m unidle.predictors.esmfold", description=__doc__.split(":")[0]
    )
    parser.add_argument("--model", default=MODEL, help="name, or a folder with the weights (%(default)s)")
    parser.add_argument("--download", action="store_true", help="get what is missing from the model's hub")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1 ... (%(default)s)")
    options = parser.parse_args()

    def start(parameters: Mapping[str, Any]) -> tuple[str, str, Predict]:
        if parameters:
            leave(f"esmfold: takes no parameters, and was given {', '.join(parameters)}")
        tokenizer, model = load(options.model, options.download, options.device)
        return "esmfold", version_of(model), Folding(tokenizer, model)

    serve(start)


if __name__ == "__main__":
    main()
