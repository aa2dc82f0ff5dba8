"""Verdicts for machines: JUnit XML, which build servers show, and JSON."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from attcem.check.judge import Outcome, Verdict

NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(verdicts: Sequence[Verdict]) -> str:
    """A test suite for each setting, a test case for each rule."""
    root = Element("testsuites", {"name": "attcem check"} | counts([each for one in verdicts for each in one.outcomes]))
    for verdict in verdicts:
        suite = SubElement(root, "testsuite", {"name": plain(verdict.name)} | counts(verdict.outcomes))
        for outcome in verdict.outcomes:
            case = SubElement(suite, "testcase", classname=plain(verdict.name), name=outcome.rule)
            if outcome.passed:
                SubElement(case, "system-out").text = plain(str(outcome))
            else:
                SubElement(case, "failure", message=plain(str(outcome)))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def counts(outcomes: Sequence[Outcome]) -> dict[str, str]:
    failures = sum(not outcome.passed for outcome in outcomes)
    return {"tests": str(len(outcomes)), "failures": str(failures), "errors": "0"}


def plain(text: str) -> str:
    return NOT_IN_XML.sub("�", text)


def to_json(verdicts: Sequence[Verdict]) -> str:
    """One object for each setting; a bound that is infinite is null."""
    listed = [
        {
            "name": verdict.name,
            "passed": verdict.passed,
            "rules": [
                {key: None if is_endless(value) else value for key, value in dataclasses.asdict(outcome).items()}
                for outcome in verdict.outcomes
            ],
        }
        for verdict in verdicts
    ]
    return json.dumps({"passed": all(verdict.passed for verdict in verdicts), "settings": listed}, indent=1) + "\n"


def is_endless(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
