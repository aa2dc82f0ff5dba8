"""An artifact passes the gate by the audit inside it."""

import shutil

from attcem.check import Rules, check


def test_an_artifact_is_judged_by_the_audit_inside_it_if_nothing_was_changed(audited, tmp_path):
    folder = shutil.copytree(audited, tmp_path / "artifact")
    (verdict,) = check([tmp_path], Rules(min_accuracy=0.5))
    assert [outcome.rule for outcome in verdict.outcomes] == ["flags", "accuracy"] and "artifact: " in verdict.name
    (folder / "audit" / "result.json").write_text((folder / "audit" / "result.json").read_text() + " ")
    (verdict,) = check([tmp_path], Rules(min_accuracy=0.5))
    assert not verdict.passed and "not the file that was shipped" in verdict.outcomes[0].text
