"""Writes the metadata of a wheel from pyproject.toml: `wheel_metadata.py DIST_INFO VERSION TAG [--headers]`

The wheel `unidle` has the README as its description. With --headers: those of `unidle-headers`, the C++
headers for workload libraries, which the extra `plugins` installs.
"""

import re
import shutil
import sys
from pathlib import Path

import tomllib

SOURCE = Path(__file__).resolve().parent.parent


def description():
    """Where it is shown there is no file that a relative link could lead to."""
    text = (SOURCE / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"!\[[^]]*\]\([^):]*\)\n*", "", text)
    return re.sub(r"\[([^]]*)\]\([^):]*\)", r"\1", text)


def metadata(project, version, headers):
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}{'-headers' if headers else ''}",
        f"Version: {version}",
        f"Summary: {'C++ headers for workload libraries of unidle' if headers else project['description']}",
        f"Author: {project['authors'][0]['name']}",
        f"License-Expression: {project['license']}",
        *(f"License-File: {name}" for name in project["license-files"]),
        f"Keywords: {','.join(project['keywords'])}",
        *(f"Classifier: {name}" for name in project["classifiers"]),
        f"Requires-Python: {project['requires-python']}",
    ]
    if not headers:
        lines += ["Provides-Extra: plugins", f"Requires-Dist: unidle-headers=={version}; extra == 'plugins'"]
    about = "The C++ headers for workload libraries; `pip install 'unidle[plugins]'` installs them.\n"
    lines += ["Description-Content-Type: text/markdown", "", about if headers else description()]
    return "\n".join(lines)


def main():
    folder, version, tag, *rest = sys.argv[1:]
    headers = rest == ["--headers"]
    with open(SOURCE / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    info = Path(folder)
    (info / "licenses").mkdir(parents=True)
    for name in project["license-files"]:
        shutil.copy(SOURCE / name, info / "licenses")
    (info / "METADATA").write_text(metadata(project, version, headers), encoding="utf-8")
    pure = "true" if headers else "false"
    (info / "WHEEL").write_text(
        f"Wheel-Version: 1.0\nGenerator: unidle\nRoot-Is-Purelib: {pure}\nTag: {tag}\n"
    )


main()
