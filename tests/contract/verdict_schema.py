# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""deploy/verdict.schema.json is what the writer of verdicts writes, and every verdict in the tree validates against it.

`verdict_schema.py --write` writes the schema (CMake target `docs`); `verdict_schema.py --validate FILE` reads verdicts or
documents, one a line.
"""
import copy
import json
import re
import sys

import jsonschema
import verdict_writer
from contract import ROOT, main, output_of, read

SCHEMA = "deploy/verdict.schema.json"
GOLDENS = ROOT / "tests/fixtures/recordings"
LABELLED = ROOT / "tests/fixtures/labelled_runs"

# Key, below the key that holds it where it stands in more than one -> what it means.
MEANINGS = {
    "file": "the file that was judged; only in the output of `rankscope classify`",
    "schema": "the version of this format",
    "job_id": "SLURM_JOB_ID, or an identifier that `rankscope run` or the daemon has made",
    "attempt": "number of the attempt that is judged, from 1; `attempts` lists the earlier ones",
    "state": "live: the job runs; provisional: it has ended and its last output is still being read; final",
    "revision": "grows with each change of this verdict",
    "node": "the node that computed the verdict",
    "scope": "what the verdict covers: the whole job, or the job's processes on this node",
    "code": "the failure family, in short; `rankscope list families` prints all",
    "family": "the failure family by name",
    "sub": "the kind within the family",
    "fault_class": "A1 only: what is wrong with the start: data, config, env or asset",
    "exception_type": "type of the exception as the program printed it",
    "signal": "name of the fatal signal",
    "domain": "who can mend it: workload: the job's owner; infrastructure: the operators; scheduler: nobody, it acted as configured",
    "confidence": "how often verdicts of this ground and this group of families were right, from 0 to 1; halved where a store contradicts",
    "tier": "what the confidence rests on: P: a record of the kernel, the scheduler or the hardware; C: two independent sources agree; "
            "S: one source; W: a heuristic",
    "ground": "the tier, or what limits it, from the least: heuristic, even_odds: another cause is as likely, lookalike: another cause "
              "looks the same, one_source, unseen_side: the GPUs, the other nodes or the collectives were not observed, two_sources, "
              "two_stores, record; null: a verdict of an earlier version",
    "phase": "what the job was doing at the onset",
    "onset": "when the failure began",
    "detected": "when this verdict was first given",
    "updated": "when this verdict last changed",
    "ranks": "the ranks that caused it; empty: the job as a whole",
    "nodes": "the nodes that it concerns",
    "gpus": "UUIDs of the GPUs that it concerns; places on the PCI bus, domain:bus:device, where a log names no more",
    "framework": "the framework whose progress records were recognised",
    "exit_code": "exit status of the job's command; null: not known",
    "triage": "for routing",
    "triage.running": "whether the job still runs",
    "triage.when": "how far the job had come at the onset",
    "triage.symptom": "how the failure looks from outside",
    "localization": "how far the failure is narrowed down",
    "isolation": "the component at fault",
    "isolation.ruled_in_by": "ids of the evidence",
    "shows": "the evidence, most important first",
    "shows.id": "what `evidence`, `ruled_in_by` and `cause_chain` refer to",
    "shows.store": "the kind of source that the evidence comes from",
    "shows.signal": "the kind of evidence",
    "shows.observed": "the value that was observed",
    "shows.expected": "the value that is usual",
    "shows.unit": "unit of `observed` and `expected`",
    "shows.rank": "the rank that the evidence is about",
    "shows.begin": "begin of the interval that was observed",
    "shows.end": "end of that interval",
    "shows.cite": "the observation itself: a line of a log with its byte offset, a query, a field of the scheduler, a line of the "
                  "kernel's log, or a fact about a process",
    "cite.offset": "bytes from the start of the stream",
    "implies": "what follows from the evidence",
    "implies.remedy": "the kind of action",
    "implies.evidence": "ids of the evidence",
    "cannot_decide": "questions that stay open",
    "cannot_decide.needs": "the kind of source that would decide the question",
    "cannot_decide.why": "the state of that source for this job",
    "next_tests": "commands that would decide open questions; never executed by rankscope",
    "next_tests.expects": "what the result would mean",
    "ruled_out": "families that the evidence excludes",
    "ruled_out.by": "the reason",
    "ruled_out.evidence": "ids of the evidence",
    "undecidable": "families that can be neither named nor excluded",
    "undecidable.needs": "the kind of source that is missing",
    "undecidable.why": "the state of that source for this job",
    "undecidable.by": "the reason, where the source is present and does not suffice",
    "cause_chain": "the evidence in causal order",
    "resolution": "what to do",
    "resolution.immediate": "now",
    "resolution.structural": "so that it does not happen again",
    "resolution.verify": "how to check that it is mended",
    "retry_outlook": "whether the same command can succeed when it is started again",
    "wasted_gpu_seconds": "GPU time of the work that is lost because it was not saved",
    "warnings": "findings beside the verdict; they change neither family nor confidence",
    "warnings.kind": "`rankscope list warnings` prints all",
    "warnings.remedy": "what to do",
    "data_quality": "what this verdict could not see",
    "data_quality.exact": "whether `rankscope replay` of the recording gives this document byte for byte",
    "data_quality.lost_bytes": "bytes of output that were lost before they were read",
    "data_quality.lost_events": "events that a source has lost",
    "data_quality.clock_uncertainty_s": "uncertainty of the wall clock in seconds",
    "data_quality.truncated_at": "byte offset at which the recording ends early",
    "data_quality.notes": "gaps, in words",
    "sources.state": "the state of the source on this node",
    "sources.reason": "why it is not up",
    "attempts": "earlier attempts of the same job",
    "disposition": "how the run ended, which is not what affected it",
    "disposition.kind": "by_scheduler: by a signal of the scheduler without a record that says why; killed: by a signal from outside of the "
                        "job and of the scheduler; null: the job runs",
    "disposition.by": "who ended it, where a record or the kernel names somebody",
    "disposition.uid": "the user id of who ended it",
    "disposition.reason": "the scheduler's word for it",
    "history": "changes of the family, oldest first; at most the newest 64",
    "history.from": "code of the family before",
    "history.to": "code of the family after",
    "history.why": "what the new verdict rests on",
    "amended_by": "the record that changed a final verdict",
    "next": "path of the next page of /verdict",
    "verdicts": "in the order of their job ids",
    "error": "why the file could not be read",
}


def column(table, number):
    return [cells[number].strip().strip("`") for cells in
            (line.split(" | ") for line in output_of("list", table).splitlines()[2:])]


def describe(schema, path=()):
    """Adds the meaning to each key that has one."""
    for variant in schema.get("anyOf", []):
        describe(variant, path)
    if "items" in schema:
        describe(schema["items"], path)
    for key, value in schema.get("properties", {}).items():
        value = schema["properties"][key] = copy.copy(value)
        meaning = MEANINGS.get(".".join((*path[-1:], key))) or (MEANINGS.get(key) if not path or key in ("evidence", "sources") else None)
        if meaning:
            value["description"] = meaning
        describe(value, (*path, key))


def generate():
    verdict = verdict_writer.verdict()
    codes = {"enum": [cell.removeprefix("| ") for cell in column("families", 0)]}
    families = {"enum": column("families", 1)}
    verdict["properties"] |= {"code": codes, "family": families}
    for key in ("ruled_out", "undecidable", "attempts"):
        verdict["properties"][key]["items"]["properties"]["code"] = codes
    verdict["properties"]["attempts"]["items"]["properties"]["family"] = families
    kinds = [cell.removeprefix("| ").strip("`") for cell in column("warnings", 0)]
    verdict["properties"]["warnings"]["items"]["properties"]["kind"] = {"enum": kinds}
    document = {"type": "object", "properties": {"schema": {"const": 1}, "node": {"type": "string"},
                                                 "verdicts": {"type": "array", "items": {"$ref": "#/$defs/verdict"}},
                                                 "next": {"type": "string"}},
                "required": ["schema", "node", "verdicts"]}
    unreadable = {"type": "object", "properties": {"file": {"type": "string"}, "error": {"type": "string"}},
                  "required": ["file", "error"]}
    for schema in (verdict, document, unreadable):
        describe(schema)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "rankscope verdicts",
        "description": "What /verdict, `rankscope verdict`, `replay`, `run` (verdict.json) and `classify` print. Generated from "
                       "detectors/proto/verdict.proto and detectors/document/verdict_json.cc. The enumerations are those of this "
                       "version: read a value that is not listed as unknown, and ignore keys that are not listed.",
        "anyOf": [{"$ref": "#/$defs/document"}, {"$ref": "#/$defs/verdict"}, {"$ref": "#/$defs/unreadable"}],
        "$defs": {"document": document, "verdict": verdict, "unreadable": unreadable},
    }


def as_text(schema):
    """Indented, with each list of words or numbers on one line."""
    text = json.dumps(schema, indent=1, ensure_ascii=False)
    return re.sub(r"\[\s*([^][{}]*?)\s*\]", lambda found: f"[{re.sub(chr(10) + r' *', ' ', found[1])}]", text) + "\n"


def closed(schema):
    """The same schema for the tests: a key that it does not list is an error."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: closed(value) for key, value in schema.items()}
    return schema | {"additionalProperties": False} if "properties" in schema and schema.get("type") == "object" else schema


def validator_for(text):
    """Of what the first keys show: a document, a verdict, or a file that could not be read."""
    schema = closed(json.loads(read(SCHEMA)))
    kind = "document" if "verdicts" in text else "unreadable" if "error" in text else "verdict"
    return jsonschema.Draft202012Validator({"$defs": schema["$defs"], "$ref": f"#/$defs/{kind}"})


def findings_of(name, text):
    value = json.loads(text)
    return [f"{name}: {'/'.join(map(str, error.absolute_path))}: {error.message[:200]}" for error in validator_for(value).iter_errors(value)]


def findings_of_lines(name, text):
    return [finding for number, line in enumerate(text.splitlines(), 1) for finding in findings_of(f"{name}:{number}", line)]


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(json.loads(read(SCHEMA)))
    return []


def test_the_schema_is_what_the_writer_writes():
    return [] if read(SCHEMA) == as_text(generate()) else [f"{SCHEMA} is out of date; run `cmake --build build --target docs`"]


def test_every_key_is_described():
    """No meaning without a key, no key at the top without a meaning."""
    schema = json.loads(read(SCHEMA))
    text = as_text(schema)
    missing = [key for kind in ("verdict", "document") for key, value in schema["$defs"][kind]["properties"].items()
               if "description" not in value and key != "node" and value.get("const") is None]
    unused = [key for key, meaning in MEANINGS.items() if json.dumps(meaning) not in text]
    return [f"{key} has no meaning in MEANINGS" for key in missing] + [f"MEANINGS has {key}, which no document has" for key in unused]


def verdict_of(recording):
    return output_of("replay", "--format", "json", str(recording))


def test_verdicts_of_recordings_validate():
    recordings = sorted(GOLDENS.glob("*/recording"))
    assert len(recordings) > 20, "the recordings are not where they were"
    return [finding for path in recordings for finding in findings_of(path.parent.name, verdict_of(path))]


def test_classified_logs_validate():
    logs = sorted(str(path) for path in LABELLED.rglob("*.log"))
    assert len(logs) > 50, "the labelled logs are not where they were"
    return findings_of_lines("classify", output_of("classify", *logs))


def test_an_unknown_key_is_found():
    """The other tests would pass with a schema that allows everything."""
    golden = json.loads(verdict_of(GOLDENS / "segv" / "recording"))
    golden["verdicts"][0]["triage"]["symptoms"] = "hang"
    golden["verdicts"][0]["state"] = "ended"
    found = findings_of("changed", json.dumps(golden))
    return [] if len(found) == 2 else [f"two mistakes in a verdict, {len(found)} found: {found}"]


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        (ROOT / SCHEMA).write_text(as_text(generate()), encoding="utf-8")
    elif sys.argv[1:2] == ["--validate"]:
        FOUND = [finding for path in sys.argv[2:] for finding in findings_of_lines(path, open(path, encoding="utf-8").read())]
        sys.exit("\n".join(FOUND) or 0)
    else:
        main(globals())
