"""MLflow: figures become metrics, texts become tags, the report an artifact."""

import os
import re

from mlflow.tracking import MlflowClient


def send(told):
    for known in told["runs"] or [{}]:
        client = MlflowClient(tracking_uri=_server(known.get("server")))
        run = known.get("run") or _new_run(client, told["name"])
        for name, value in told["figures"].items():
            client.log_metric(run, name, value)
        for name, text in told["texts"].items():
            client.set_tag(run, name, text[:5000])  # the longest value that MLflow's servers take
        client.log_artifact(run, told["page"], "unidle")
        if not known:
            client.set_terminated(run)
        yield f"run {run} at {client.tracking_uri}"


def _server(known):
    """The URI of the server. A record has no passwords, so the same URI with a password is preferred, if
    MLFLOW_TRACKING_URI has it."""
    given = os.environ.get("MLFLOW_TRACKING_URI")
    return given if known is None or (given and re.sub(r"(?<=://)[^/@]*@", "", given) == known) else known


def _new_run(client, name):
    experiment = os.environ.get("MLFLOW_EXPERIMENT_ID")
    named = os.environ.get("MLFLOW_EXPERIMENT_NAME")
    if experiment is None and named:
        found = client.get_experiment_by_name(named)
        experiment = found.experiment_id if found else client.create_experiment(named)
    return client.create_run(experiment or "0", run_name=name).info.run_id
