"""Weights & Biases: figures and texts are in the run's summary, the report is a panel.

A run that the program has finished is resumed. Offline, that makes a second folder of the same run, which
`wandb sync` adds to the first.
"""

import wandb

_QUIET = {
    "silent": True,
    "console": "off",
    "x_disable_stats": True,
    "x_disable_meta": True,
    "save_code": False,
}


def send(told):
    for known in told["runs"] or [{}]:
        if known.get("mode") == "disabled":
            raise RuntimeError("W&B is disabled in the program")
        run = wandb.init(
            settings=wandb.Settings(disable_git=True, **_QUIET),
            **(_same(known) if known else {"name": told["name"]}),
        )
        folder = run.settings.sync_dir
        run.summary.update({**told["figures"], **told["texts"]})
        run.log({"unidle/report": wandb.Html(told["page"])})
        run.finish()
        yield folder if run.offline else run.url


def _same(known):
    """The arguments with which init() resumes that run."""
    mode = {"mode": "offline"} if known.get("mode") == "offline" else {"resume": "allow"}
    return {
        "id": known["run"],
        "project": known.get("project"),
        "entity": known.get("entity") or None,
        "dir": known.get("folder"),
        **mode,
    }
