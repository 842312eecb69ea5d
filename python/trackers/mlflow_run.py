"""MLflow: figures become metrics, texts become tags, the report an artifact."""

import os

from mlflow.tracking import MlflowClient
from servers import address, without_secrets


def send(told, known):
    client = MlflowClient(tracking_uri=address(known.get("server"), "MLFLOW_TRACKING_URI") if known else None)
    run = known["run"] if known else _new_run(client, told["name"])
    for name, value in told["figures"].items():
        client.log_metric(run, name, value)
    for name, text in told["texts"].items():
        client.set_tag(run, name, text[:5000])  # the longest value that MLflow's servers take
    client.log_artifact(run, told["page"], "unidle")
    if not known:
        client.set_terminated(run, status=_status(told["exit_code"]))
    return f"run {run} at {without_secrets(client.tracking_uri)}"


def _status(exit_code):
    return "FINISHED" if not exit_code else "FAILED" if exit_code <= 128 else "KILLED"


def _new_run(client, name):
    experiment = os.environ.get("MLFLOW_EXPERIMENT_ID")
    named = os.environ.get("MLFLOW_EXPERIMENT_NAME")
    if experiment is None and named:
        found = client.get_experiment_by_name(named)
        experiment = found.experiment_id if found else client.create_experiment(named)
    return client.create_run(experiment or "0", run_name=name).info.run_id
