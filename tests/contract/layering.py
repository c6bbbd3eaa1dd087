# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Which room may include what. The table below is the pipeline, as a program reads it."""
import collections
import re

from contract import ROOT, main, read, sources

# The pipeline, in order: room -> the rooms above it that it may include. A room is a folder; rooms in a room are named for themselves.
# A name that ends with .h is one header: the vocabulary of a room whose inside is nobody else's.
ROOMS = {
    "detectors/proto": "",
    "detectors/model": "",
    "detectors/logs/text": "model logs/record.h",
    "detectors/logs/progress": "model logs/record.h logs/text",
    "detectors/logs/failures": "model logs/record.h logs/text logs/progress",
    "detectors/logs/markers": "model logs/record.h logs/text logs/progress logs/failures",
    "detectors/logs": "model logs/text logs/progress logs/failures logs/markers",
    "detectors/attribution": "model",
    "detectors/reports": "model",
    "detectors/recording": "proto model",
    "detectors/windows/series": "model logs/record.h",
    "detectors/windows/trackers": "model logs/record.h reports windows/series",
    "detectors/windows": "proto model logs/record.h logs/text/prefix.h logs/text/printed_time.h attribution windows/series windows/trackers",
    "detectors/features": "proto model logs/record.h reports windows windows/series windows/trackers",
    "detectors/families": "proto model features",
    "detectors/sentences": "proto model features families",
    "detectors/verdict": "proto model features families windows windows/series sentences",
    "detectors/engine": "proto model logs logs/text attribution recording windows windows/series features families sentences verdict",
    "detectors/status": "proto model attribution windows windows/trackers families engine",
    "detectors/document": "proto model",
    "exporter/proto": "",
    "exporter/loop": "model document",
    "exporter/config": "model loop",
    "exporter/processes": "source.h model attribution loop",
    "exporter/output": "source.h model logs/text attribution loop processes",
    "exporter/gpu": "source.h model loop processes",
    "exporter/nccl": "source.h model reports loop processes",
    "exporter/kernel_log": "source.h model loop processes gpu",
    "exporter/infiniband": "source.h model loop processes",
    "exporter/probes/attach": "source.h model loop processes bpf/events",
    "exporter/probes/calls": "model loop probes/attach bpf/events",
    "exporter/probes/stdio": "model logs/text attribution loop processes output probes/attach bpf/events",
    "exporter/probes/wait": "source.h model loop processes probes/attach bpf/events",
    "exporter/probes/network": "model loop probes/attach bpf/events",
    "exporter/probes/io": "model loop probes/attach bpf/events",
    "exporter/probes/process": "model loop processes probes/attach bpf/events",
    "exporter/slurm": "source.h model logs/text document loop",
    "exporter/replay": "proto model logs logs/text reports recording engine loop",
    "exporter/watch": "proto model logs/text engine document loop output slurm",
    "exporter/run": "source.h model logs/text attribution loop processes replay",
    "exporter/metrics": "detectors/proto model families sentences/template.h engine status document exporter/proto",
    "exporter/web": "model families status document metrics",
    "exporter/http": "model status document families config slurm metrics web",
    "exporter/notify": "detectors/proto model families status document config loop exporter/proto",
    "exporter/daemon": "version.h source.h model logs/text attribution recording engine status document loop config processes output gpu nccl kernel_log "
                       "infiniband probes/attach probes/calls probes/stdio probes/wait probes/network probes/io probes/process slurm replay "
                       "run metrics http notify exporter/proto",
    "exporter/cli": "version.h model logs logs/text logs/progress families verdict engine status document loop config processes probes/attach slurm replay watch "
                    "run metrics http notify daemon",
    "exporter": "model cli",
}

# (room or file, header prefix, why). Narrow, and each with its reason.
EXCEPTIONS = [
    ("detectors/families/", "detectors/logs/failures/exception_table.h", "one table of exception types for parser and family"),
    ("detectors/engine/engine_observations", "detectors/logs/failures/kernel_event.h", "a kernel event is read as the log's lines are"),
]

# One library, one room: include pattern -> where it may stand.
LIBRARIES = [
    (r"(bpf/(?!events/)|libelf|gelf\.h|elf\.h|.*\.skel\.h)", ["exporter/probes/"]),
    (r"sys/capability\.h", ["exporter/daemon/privileges"]),
    (r"(nvml\.h|exporter/gpu/nvml_)", ["exporter/gpu/nvml"]),
    (r"yaml-cpp/", ["exporter/config/"]),
    (r"(boost/|openssl/)", ["exporter/http/"]),
    (r"prometheus/", ["exporter/metrics/"]),
    (r"zlib\.h", ["exporter/http/compression", "exporter/daemon/kept_file", "exporter/run/artifact_archive", "exporter/replay/packed_text"]),
    (r"curl/", ["exporter/loop/curl_library"]),
    (r"(spdlog|fmt)/", ["exporter/loop/logger"]),
    (r"re2/", ["detectors/logs/"]),
    (r"CLI/", ["exporter/cli/", "exporter/main.cc"]),
    (r"google/protobuf/", ["detectors/recording/", "detectors/engine/", "detectors/verdict/", "detectors/document/", "exporter/metrics/"]),
    (r"nlohmann/", []),  # tests read with it what the product's own writer writes
    (r"simdjson\.h", ["exporter/slurm/json_records", "exporter/slurm/event_json"]),
]

MOST_SOURCES = 80  # of a room: what a person still finds his way in
MOST_EXCEPTIONS = 10

# The detectors compute; what could read a clock, a file, a thread or the machine is not theirs. <chrono> is for calendars
# and <csignal> for the numbers of signals: the names below must not occur.
IMPURE = re.compile(r"(fstream|filesystem|iostream|thread|mutex|shared_mutex|condition_variable|future|random|ctime"
                    r"|time\.h|unistd\.h|fcntl\.h|signal\.h|pthread\.h|poll\.h|dirent\.h|sys/.*|linux/.*|netinet/.*"
                    r"|arpa/.*|spdlog/.*)")

WORLDLY = re.compile(r"(?<![.>:\w])(system_clock|steady_clock|high_resolution_clock|getenv|setenv|fopen|freopen|popen|system|raise|abort|exit"
                     r"|sigaction|clock_gettime|gettimeofday|std::time|std::rand|random_device|std::cout|std::cerr|printf"
                     r"|fprintf|thread_local)\s*(?:\(|::now|\b(?=;))")

INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.M)


def includes():
    for path in sources("detectors", "exporter"):
        for header in INCLUDE.findall(read(path)):
            yield path.as_posix(), header


def room_of(path):
    """The folder of a file: headers that protoc or the build writes have no other."""
    return path.rpartition("/")[0]


def allowed_of(room):
    """The rooms and the headers that a room may include. `model` is detectors/model: a name stands for the only room called so."""
    for name in ROOMS[room].split():
        if name.startswith("bpf/") or name in ROOMS:
            yield name
        elif name.endswith(".h"):
            yield next(f"{top}/{name}" for top in ("detectors", "exporter") if (ROOT / top / name).is_file() or name == "version.h" and top == "exporter")
        else:
            yield next(f"{top}/{name}" for top in ("detectors", "exporter") if f"{top}/{name}" in ROOMS)


def excepted(path, header):
    return any(path.startswith(room) and header.startswith(prefix) for room, prefix, _ in EXCEPTIONS)


def test_rooms_include_what_they_may():
    findings = []
    for path, header in includes():
        if header.startswith("tests/"):
            findings.append(f"{path} includes {header}: the product knows no tests")
        if not header.startswith(("detectors/", "exporter/", "bpf/")) or header.startswith("bpf/") and not (ROOT / header).is_file():
            continue  # a library's
        room = room_of(path)
        if room not in ROOMS:
            continue  # the next test says so
        allowed = {room, *allowed_of(room)}
        if room_of(header) not in allowed and header not in allowed and not excepted(path, header):
            findings.append(f"{path} includes {header}; {room} may include only {', '.join(sorted(allowed))}")
    return findings


def test_every_room_has_a_rule():
    findings = [f"{room} has no rule" for room in {room_of(path.as_posix()) for path in sources("detectors", "exporter")}
                if room not in ROOMS and room != "detectors"]
    return findings + [f"{room} is no room any more" for room in ROOMS if not (ROOT / room).is_dir()]


def test_rules_follow_the_pipeline():
    """A room includes only rooms above it: there is no way back."""
    order = list(ROOMS)
    return [f"{room} includes {above}, which comes after it" for room in ROOMS for above in allowed_of(room)
            if above in ROOMS and order.index(above) >= order.index(room)]


def test_nothing_is_loose():
    """At the top stand what starts the programs and what a source is."""
    top = {"exporter/main.cc", "exporter/serve_main.cc", "exporter/source.h"}
    return [f"{path} lies loose" for path in (p.as_posix() for p in sources("detectors", "exporter"))
            if room_of(path) in ("detectors", "exporter", "exporter/probes") and path not in top]


def test_rooms_are_small():
    count = collections.Counter(room_of(path.as_posix()) for path in sources("detectors", "exporter"))
    return [f"{room} has {number} sources; at most {MOST_SOURCES}" for room, number in count.items() if number > MOST_SOURCES]


def test_one_library_one_room():
    findings = []
    for path, header in includes():
        for pattern, rooms in LIBRARIES:
            if re.match(pattern, header) and not path.startswith(tuple(rooms)):
                findings.append(f"{path} includes {header}, which belongs to {', '.join(rooms) or 'tests'}")
    return findings


def test_detectors_are_pure():
    return [f"{path} includes <{header}>: the detectors know no clock, file, thread or machine"
            for path, header in includes() if path.startswith("detectors/") and IMPURE.fullmatch(header)]


def test_detectors_name_nothing_of_the_world():
    findings = []
    for path in sources("detectors"):
        for number, line in enumerate(read(path).splitlines(), 1):
            code = re.sub(r'"(\\.|[^"\\])*"', '""', line.split("//")[0])
            if WORLDLY.search(code):
                findings.append(f"{path}:{number}: {line.strip()}")
    return findings


def test_the_generator_knows_no_judge():
    """What makes the jobs that measure the judge includes nothing of it: only the model, the recording and itself."""
    mine = [path for path in sources("tests") if path.as_posix().startswith("tests/generator/")]
    findings = [] if mine else ["tests/generator/ has no sources"]
    return findings + [f"{path} includes {header}" for path in mine for header in INCLUDE.findall(read(path))
                       if header.startswith(("detectors/", "exporter/", "bpf/", "tests/"))
                       and not header.startswith(("detectors/model/", "detectors/recording/", "tests/generator/"))]


def test_exceptions_are_used():
    """An exception that nobody needs any more is deleted."""
    used = set()
    for path, header in includes():
        for row in EXCEPTIONS:
            if path.startswith(row[0]) and header.startswith(row[1]):
                used.add(row)
    findings = [] if len(EXCEPTIONS) <= MOST_EXCEPTIONS else [f"{len(EXCEPTIONS)} exceptions; at most {MOST_EXCEPTIONS}"]
    return findings + [f"no file of {room} includes {header} any more; delete its exception"
            for room, header, why in EXCEPTIONS if (room, header, why) not in used]


if __name__ == "__main__":
    main(globals())
