"""The diagnosis of a run that W&B's server has. With the real package, and a server that notes requests."""

import http.server
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest

TRACKERS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "trackers")
FILE = {"id": "1", "name": "unidle/report.html", "url": "/f", "directUrl": "/f", "sizeBytes": 17, "md5": ""}
RUN = {
    "id": "c3RvcmFnZQ==",
    "name": "own",
    "displayName": "small",
    "state": "failed",
    "config": "{}",
    "tags": [],
    "summaryMetrics": json.dumps({"loss": 0.5}),
    "systemMetrics": "{}",
    "projectId": "1",
    "historyKeys": {},
    "fileCount": 1,
    "files": {"edges": [{"node": FILE, "cursor": ""}], "pageInfo": {"endCursor": "", "hasNextPage": False}},
    "user": {"name": "me", "username": "me"},
}


class Server(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.body()
        if not self.path.endswith("/graphql"):
            return self.answer({})  # what the package tells of itself
        asked = json.loads(body)
        self.server.asked.append(asked)
        name = re.search(r"(?:query|mutation)\s+(\w+)", asked["query"]).group(1)
        answers = {
            "UpsertBucket": {"upsertBucket": {"bucket": {"id": RUN["id"]}}},
            "CreateRunFiles": {
                "createRunFiles": {
                    "runID": RUN["id"],
                    "uploadHeaders": [],
                    "files": [{"name": "unidle/report.html", "uploadUrl": "/stored"}],
                }
            },
        }
        viewer = {"id": "1", "username": "me", "entity": "team", "flags": "{}"}
        self.answer(
            {"data": answers.get(name, {"viewer": viewer, "project": {"internalId": "1", "run": RUN}})}
        )

    def do_PUT(self):
        self.server.stored.append(self.body())
        self.answer({})

    def body(self):
        return self.rfile.read(int(self.headers["Content-Length"]))

    def answer(self, value):
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *given):
        pass


@unittest.skipUnless(importlib.util.find_spec("wandb"), "this Python has no wandb")
class WandbServerTest(unittest.TestCase):
    def test_the_run_keeps_its_state(self):
        """Its summary gets more, and it gets a file; nothing else is changed. The server is the program's."""
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
        server.asked, server.stored = [], []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        with tempfile.TemporaryDirectory() as folder:
            page, told = (os.path.join(folder, name) for name in ("page.html", "told.json"))
            known = {
                "run": "own",
                "server": "http://127.0.0.1:%d" % server.server_port,
                "project": "shapes",
                "entity": "team",
                "name": "small",
                "mode": "online",
                "folder": folder,
            }
            diagnosis = {
                "answer": "It waits.",
                "verdict": "input",
                "throughput": {"samples_per_s": 12.5},
                "arithmetic": {"flops_per_step": 6.0, "flops_per_s": 3.0, "mfu": None},
                "device": {"busy": 0.25},
                "time": {"train": 1.5},
                "step": None,
                "findings": [],
            }
            with open(page, "w") as file:
                file.write("<p>The report</p>")
            with open(told, "w") as file:
                json.dump(
                    {
                        "name": "record",
                        "folder": folder,
                        "page": page,
                        "exit_code": 1,
                        "runs": [known],
                        "diagnosis": diagnosis,
                    },
                    file,
                )
            done = subprocess.run(
                [sys.executable, TRACKERS, "wandb", told],
                env=dict(
                    os.environ,
                    WANDB_API_KEY="0" * 40,
                    WANDB_BASE_URL="http://127.0.0.1:9",
                    WANDB_DIR=folder,
                    HOME=folder,
                ),
                cwd=folder,
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
            )
        self.assertTrue(done.stdout.startswith("sent: http"), done.stdout + done.stderr)
        changes = [asked for asked in server.asked if asked["query"].lstrip().startswith("mutation")]
        summaries = [asked for asked in changes if "UpsertBucket" in asked["query"]]
        self.assertEqual(
            [sorted(asked["variables"]) for asked in summaries], [["id", "summaryMetrics"]], changes
        )
        summary = json.loads(summaries[0]["variables"]["summaryMetrics"])
        self.assertEqual(summary["loss"], 0.5)
        self.assertEqual(summary["unidle/samples_per_s"], 12.5)
        self.assertEqual(summary["unidle/flops_per_s"], 3.0)
        self.assertNotIn("unidle/mfu", summary)
        others = [asked["query"] for asked in changes if asked not in summaries]
        self.assertTrue(all("CreateRunFiles" in query for query in others), others)
        self.assertEqual(server.stored, [b"<p>The report</p>"])


if __name__ == "__main__":
    unittest.main()
