"""Records hold the addresses of trackers' servers without secrets, and stores by their whole paths."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "shim"))

from _unidle_shim.facts.addresses import absolute, without_secrets  # noqa: E402


class AddressesTest(unittest.TestCase):
    def test_without_secrets(self):
        for address, cleaned in (
            ("http://tracking:5000/mlflow", "http://tracking:5000/mlflow"),
            ("https://u:secret@tracking:5000/a", "https://tracking:5000/a"),
            ("https://secret@tracking", "https://tracking"),
            ("postgresql://u:p@secret@host/db", "postgresql://host/db"),
            ("postgresql://h/db?user=u&password=secret", "postgresql://h/db"),
            ("postgresql://h/db?user=u&password=s@secret", "postgresql://h/db"),
            ("https://host/teams/me@there.org", "https://host/teams/me@there.org"),
            # Where the password ends cannot be told.
            ("http://u:a/secret@host", "http://"),
            ("http://u:1/secret@host", "http://"),
            ("http://u:a?secret@host", "http://"),
            ("http://u:a#secret@host", "http://"),
            ("mysql://u:a@secret/more@host/db", "mysql://"),
            ("sqlite:////home/me@there/mlflow.db", "sqlite:////home/me@there/mlflow.db"),
            ("file:///home/me/mlruns", "file:///home/me/mlruns"),
            ("databricks://profile", "databricks://profile"),
            ("mlruns", "mlruns"),
        ):
            with self.subTest(address):
                self.assertEqual(without_secrets(address), cleaned)

    def test_absolute(self):
        for address, whole in (
            ("sqlite:///mlflow.db", "sqlite:///%s/mlflow.db" % os.getcwd()),
            ("sqlite:////data/mlflow.db", "sqlite:////data/mlflow.db"),
            ("sqlite+pysqlite:///a/b.db", "sqlite+pysqlite:///%s/a/b.db" % os.getcwd()),
            ("sqlite:///:memory:", "sqlite:///:memory:"),
            ("./mlruns", "%s/mlruns" % os.getcwd()),
            ("file:mlruns", "file:%s/mlruns" % os.getcwd()),
            ("file:/data/mlruns", "file:/data/mlruns"),
            ("file:///data/mlruns", "file:///data/mlruns"),
            ("http://tracking:5000", "http://tracking:5000"),
            ("postgresql://h/db", "postgresql://h/db"),
            ("databricks", "databricks"),
            ("databricks-uc", "databricks-uc"),
            ("", ""),
        ):
            with self.subTest(address):
                self.assertEqual(absolute(address), whole)


if __name__ == "__main__":
    unittest.main()
