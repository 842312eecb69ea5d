"""TensorBoard: figures become scalars of one step, the answer and the findings a text."""

import os

try:
    from torch.utils.tensorboard import SummaryWriter
except ImportError:
    from tensorboardX import SummaryWriter


def send(told, known):
    folder = known["run"] if known else os.path.join(told["folder"], "tensorboard")
    with SummaryWriter(folder, filename_suffix=".unidle") as writer:
        for name, value in told["figures"].items():
            writer.add_scalar(name, value)
        lines = "\n".join(
            "    " + line for line in told["diagnosis"]["text"].splitlines()
        )  # as Markdown's code
        writer.add_text("unidle/diagnosis", f"{told['diagnosis']['answer']}\n\n{lines}\n\n{told['page']}")
    return folder
