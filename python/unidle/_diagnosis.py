"""unidle.diagnose(): what `unidle diagnose` says of a record, as objects."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Tuple

from unidle import _recording
from unidle._program import PathLike, asked, program

_COLOURS = {"critical": "#b3261e", "warning": "#8a5a00", "info": "inherit"}


@dataclass(frozen=True)
class Fix:
    """A change that a finding proposes: the setting `knob` from `old` to `new`, where these are known."""

    knob: str
    old: Any
    new: Any
    kind: str  # "exact", "numeric" or "semantic": what it changes of the results
    how: str
    patch: Optional[str] = None  # of the program, as a unified diff


@dataclass(frozen=True)
class Finding:
    """Why the device idles. `share` of the wall time, and the `bound` of the speed-up: no promise."""

    rule: str
    title: str
    severity: str  # "critical", "warning" or "info"
    share: Optional[float]
    bound: Optional[float]
    evidence: Tuple[str, ...]
    where: Optional[str]  # file:line
    fixes: Tuple[Fix, ...]
    advice: str = ""  # what to do where there is no fix

    @property
    def fix(self) -> Optional[Fix]:
        """The first one."""
        return self.fixes[0] if self.fixes else None

    def __str__(self) -> str:
        gain = "" if self.bound is None else f", at best {self.bound:.1f}x"
        share = "" if self.share is None else f", {100 * self.share:.0f} %"
        lines = [f"{self.title} [{self.rule}]: {self.severity}{share}{gain}"]
        lines += [f"- {fact}" for fact in self.evidence]
        lines += [f"=> {fix.how}" for fix in self.fixes] or [f"=> {self.advice}"]
        return "\n".join(lines)


@dataclass(frozen=True)
class Diagnosis:
    """The answer about a record. str() is the text of `unidle diagnose`, `answer` its first sentence."""

    answer: str
    verdict: str
    outcome: str
    findings: Tuple[Finding, ...]  # the strongest first
    busy: Optional[float]  # share of the time in which the device works
    samples_per_s: Optional[float]
    steps_per_s: Optional[float]
    time: dict  # phase -> seconds
    step: Optional[dict]  # part -> share of a step
    abstained: dict  # rule -> the signal that it would need
    text: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        rules = ", ".join(finding.rule for finding in self.findings) or "no findings"
        return f"<unidle.Diagnosis: {self.verdict}; {rules}>"

    def _repr_html_(self) -> str:
        rows = "".join(map(_row, self.findings))
        head = "<tr><th></th><th>finding</th><th>of the time</th><th>at best</th><th>change</th></tr>"
        return f"<p><b>{html.escape(self.answer)}</b></p>" + (f"<table>{head}{rows}</table>" if rows else "")


def _row(finding: Finding) -> str:
    facts = "<br>".join(map(html.escape, finding.evidence))
    fixes = "<br>".join(
        html.escape(fix.how) + (f"<pre>{html.escape(fix.patch)}</pre>" if fix.patch else "")
        for fix in finding.fixes
    )
    cells = (
        f'<b style="color:{_COLOURS.get(finding.severity, "inherit")}">{html.escape(finding.severity)}</b>',
        f"<b>{html.escape(finding.title)}</b><br>{facts}",
        "" if finding.share is None else f"{100 * finding.share:.0f} %",
        "" if finding.bound is None else f"{finding.bound:.1f}x",
        fixes or html.escape(finding.where or ""),
    )
    return "<tr>" + "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells) + "</tr>"


def diagnose(record: Optional[PathLike] = None) -> Diagnosis:
    """Says why the device idles in a record, as `unidle diagnose` does: that of the latest observe() in this
    program, otherwise the latest in `.unidle/runs`."""
    words = ("diagnose", *_words_of(record), "--format", "json", "--texts")
    body = json.loads(asked(program(), *words, ends=(0, 1)))
    return Diagnosis(
        answer=body["answer"],
        verdict=body["verdict"],
        outcome=body["outcome"],
        findings=tuple(map(_finding, body["findings"])),
        busy=body["device"]["busy"],
        samples_per_s=body["throughput"]["samples_per_s"],
        steps_per_s=body["throughput"]["steps_per_s"],
        time=body["time"],
        step=body["step"],
        abstained={each["id"]: each["missing"] for each in body["abstained"]},
        text=body["text"],
    )


def _finding(body: dict) -> Finding:
    fixes = tuple(
        Fix(fix["knob"], fix["from"], fix["to"], fix["class"], fix["how"], fix.get("patch"))
        for fix in body["fixes"]
    )
    return Finding(
        body["id"],
        body["title"],
        body["severity"],
        body["share"],
        body["speedup_bound"],
        tuple(body["evidence"]),
        body["where"],
        fixes,
        body.get("advice", ""),
    )


class Page(type(Path())):  # type: ignore[misc]
    """The path of a report. A notebook shows the page itself."""

    def _repr_html_(self) -> str:
        page = html.escape(self.read_text(encoding="utf-8"))
        return f'<iframe srcdoc="{page}" style="width:100%;height:40em;border:0"></iframe>'


def report(record: Optional[PathLike] = None, output: Optional[PathLike] = None) -> Page:
    """Writes the report of a record (`unidle report`), an HTML file that needs no network; by default of the
    record that diagnose() means. The default `output` is `report.html` in the record's folder. Returns its
    path, which a notebook shows as the page."""
    options = () if output is None else ("-o", str(output))
    return Page(asked(program(), "report", *_words_of(record), *options).strip().splitlines()[-1])


def _words_of(record: Optional[PathLike]) -> tuple:
    meant = record if record is not None else _recording.latest()
    return () if meant is None else (str(meant),)
