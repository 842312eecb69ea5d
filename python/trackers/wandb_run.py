"""Weights & Biases: figures and texts are in the run's summary, the report is a file of it.

The program's run is changed through W&B's API: to resume it would also change its state, its command and its
environment. An offline run gets a companion with an id of its own: `wandb sync` of a second folder with the
same id would replace the first.
"""

import os
import shutil
import tempfile
import uuid

import wandb
from servers import Refused, address

_QUIET = {
    "silent": True,
    "console": "off",
    "x_disable_stats": True,
    "x_disable_meta": True,
    "save_code": False,
}


def send(told, known):
    if known is None:
        return _new_run(told, name=told["name"])
    if known["mode"] == "disabled":
        raise Refused("W&B is disabled in the program")
    if known["mode"] not in ("offline", "dryrun"):
        return _add(told, known)
    return _new_run(
        told,
        id=uuid.uuid4().hex[:8],  # whatever WANDB_RUN_ID says
        name=known["name"] or f"unidle {known['run']}",
        notes=f"unidle's diagnosis of the run {known['run']}",
        job_type="unidle",
        project=known["project"],
        entity=known["entity"] or None,
        dir=known["folder"],
        mode="offline",
    )


def _new_run(told, **more):
    run = wandb.init(settings=wandb.Settings(disable_git=True, **_QUIET), **more)
    if run.disabled:
        raise Refused("W&B is disabled")
    folder = run.settings.sync_dir
    run.summary.update({**told["figures"], **told["texts"]})
    run.log({"unidle/report": wandb.Html(told["page"])})
    run.finish(exit_code=told["exit_code"] or 0)
    return folder if run.offline else run.url


def _add(told, known):
    api = wandb.Api(overrides={"base_url": address(known["server"], "WANDB_BASE_URL")})
    run = api.run("/".join(filter(None, (known["entity"], known["project"], known["run"]))))
    run.summary.update({**told["figures"], **told["texts"]})
    with tempfile.TemporaryDirectory() as root:
        page = os.path.join(root, "unidle", "report.html")
        os.mkdir(os.path.dirname(page))
        shutil.copyfile(told["page"], page)
        run.upload_file(page, root)
    return run.url
