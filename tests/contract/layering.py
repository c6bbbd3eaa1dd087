# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Which room may include what. The table below is the picture in README.md, as a program reads it."""
import re

from contract import ROOT, main, read, sources

# Room -> project headers it may include, by prefix, besides its own. The longest matching room counts.
ALLOWED = {
    "detectors/model/": [],
    "detectors/attribution/": ["detectors/model/"],
    "detectors/logs/": ["detectors/model/"],
    "detectors/reports/": ["detectors/model/"],
    "detectors/windows/": ["detectors/model/", "detectors/attribution/", "detectors/logs/record.h"],
    "detectors/features/": ["detectors/model/", "detectors/windows/"],
    "detectors/families/": ["detectors/features/", "detectors/model/"],
    "detectors/": ["detectors/"],
    "exporter/collectors/": ["detectors/model/", "exporter/source.h", "exporter/event_loop.h", "exporter/worker.h", "exporter/user_", "exporter/owned_fd.h",
                             "exporter/config.h"],
    "exporter/probes/": ["detectors/model/", "exporter/source.h", "exporter/event_loop.h", "exporter/worker.h", "exporter/user_", "exporter/owned_fd.h",
                         "exporter/command.h", "exporter/config.h", "bpf/events/"],
    "exporter/slurm/": ["detectors/model/", "exporter/source.h", "exporter/event_loop.h", "exporter/worker.h", "exporter/user_", "exporter/owned_fd.h",
                        "exporter/disk_thread.h", "exporter/command.h", "exporter/config.h"],
    "exporter/run/": ["detectors/model/", "exporter/source.h", "exporter/event_loop.h", "exporter/worker.h", "exporter/user_", "exporter/owned_fd.h",
                      "exporter/config.h"],
    "exporter/replay/": ["detectors/model/", "exporter/source.h", "exporter/event_loop.h", "exporter/worker.h", "exporter/user_", "exporter/owned_fd.h",
                         "exporter/config.h"],
    "exporter/fleet/": ["detectors/model/", "exporter/source.h", "exporter/event_loop.h", "exporter/worker.h",
                        "exporter/config.h"],
    "exporter/metrics/": ["detectors/model/", "detectors/engine.h", "detectors/job_status.h", "detectors/proto/verdict.pb.h",
                          "detectors/families/family_names.h", "exporter/proto/"],
    "exporter/http/": ["detectors/model/", "exporter/metrics/", "exporter/web/"],
    "exporter/web/": ["detectors/model/", "exporter/metrics/"],
    "exporter/": ["detectors/", "exporter/", "bpf/events/"],
}

# (room or file, header prefix, why). Narrow, and each with its reason.
EXCEPTIONS = [
    ("detectors/features/", "detectors/logs/record.h", "features name the closed vocabulary of incidents"),
    ("detectors/features/", "detectors/proto/verdict.pb.h", "the closed enums of phase, store and tier"),
    ("detectors/windows/", "detectors/proto/verdict.pb.h", "the closed enums of phase, store and tier"),
    ("detectors/windows/report_tracker", "detectors/reports/ras_report.h", "what RAS says enters as its text and is parsed inside"),
    ("detectors/windows/report_tracker", "detectors/reports/ras_roster.h", "whom RAS lists is kept as the reader has it"),
    ("detectors/features/ras_check", "detectors/reports/ras_roster.h", "whom RAS lists is kept as the reader has it"),
    ("detectors/features/report", "detectors/reports/culprit.h", "one rule of who holds up a collective, beside the readers it needs"),
    ("exporter/collectors/nccl_ras_diary", "detectors/reports/ras_report.h", "which reports are worth keeping, is decided before the door"),
    ("exporter/collectors/nccl_ras_diary", "detectors/reports/ras_roster.h", "which reports are worth keeping, is decided before the door"),
    ("exporter/collectors/nccl_digest", "detectors/reports/", "dumps of megabytes become digests before the door, as bytes become lines"),
    ("detectors/families/", "detectors/logs/exception_table.h", "one table of exception types for parser and family"),
    ("detectors/families/family_names", "detectors/job_status.h", "FamilyName is part of the engine's public state"),
    ("exporter/replay/", "detectors/recording.h", "the codec of recordings: pure, and the room's one library"),
    ("exporter/replay/judge", "detectors/engine.h", "judges a recording without a daemon"),
    ("exporter/replay/log_file", "detectors/engine.h", "judges a log file without a daemon"),
    ("exporter/replay/log_file", "detectors/logs/assembler.h", "bytes become lines before the door"),
    ("exporter/replay/log_file", "detectors/logs/masked_line.h", "lines are masked before the door"),
    ("exporter/replay/log_file", "detectors/logs/printed_time.h", "files are read in the order of the times they print"),
    ("exporter/replay/log_file_set", "detectors/logs/prefix.h", "whose a file is, is decided before it is read"),
    ("exporter/run/run_files", "exporter/replay/follower.h", "the daemon follows the recording that a wrapper keeps"),
    ("exporter/replay/", "detectors/proto/", "recordings are these messages"),
    ("exporter/run/", "detectors/logs/assembler.h", "bytes become lines before the door"),
    ("exporter/run/", "detectors/logs/masked_line.h", "lines are masked before the door"),
    ("exporter/run/", "detectors/logs/redactor.h", "lines are masked before the door"),
    ("exporter/run/", "detectors/attribution/environment_keys.h", "the list of variables that may leave a process"),
    ("exporter/slurm/", "exporter/collectors/http_page.h", "one way to fetch another program's page"),
    ("exporter/slurm/", "detectors/logs/redactor.h", "texts are masked before the door"),
    ("exporter/slurm/event_json", "detectors/verdict_json.h", "how a time is written in documents"),
    ("exporter/http/documents", "exporter/slurm/event_json.h", "an event is one document, in the file and on /events"),
    ("exporter/run/", "detectors/attribution/cgroup_path.h", "what of a process's cgroups passes the door"),
    ("exporter/collectors/proc", "detectors/attribution/cgroup_path.h", "whose a process is decides whether it is told of, by the same rule"),
    ("exporter/probes/", "exporter/collectors/proc", "the sources that watch processes share whom they track, and how /proc's texts "
     "are read"),
    ("exporter/collectors/stdout_tail", "detectors/logs/assembler.h", "bytes become lines before the door"),
    ("exporter/collectors/stdout_tail", "detectors/logs/masked_line.h", "lines are masked before the door"),
    ("exporter/collectors/stdout_tail", "detectors/attribution/attribution.h", "whose a file is depends on who has it: one rank, or the job"),
    ("exporter/probes/output_", "detectors/logs/assembler.h", "bytes become lines before the door"),
    ("exporter/probes/output_", "detectors/logs/masked_line.h", "lines are masked before the door"),
    ("exporter/probes/left_output", "detectors/attribution/attribution.h", "whose a file is depends on who has it: one rank, or the job"),
    ("exporter/probes/left_output", "exporter/collectors/", "one way to read a user's output file, and one book of what was heard of it"),
    ("exporter/probes/standard_files", "exporter/collectors/output_file.h", "one name for an output file"),
    ("exporter/probes/recent_lines", "detectors/logs/prefix.h", "a launcher's copy of a rank's line differs by its prefix"),
    ("exporter/probes/output_rules", "detectors/attribution/attribution.h", "whose words are the job's depends on who says them: "
     "rank, worker or launcher"),
    ("exporter/http/", "detectors/job_status.h", "the engine's public state"),
    ("exporter/http/", "detectors/verdict_json.h", "a verdict as its documents"),
    ("exporter/http/", "detectors/verdict_words.h", "the words of the closed enums"),
    ("exporter/web/", "detectors/gpu_history.h", "the engine's public state"),
    ("exporter/web/", "detectors/verdict_json.h", "a verdict as its documents"),
    ("exporter/web/", "detectors/verdict_words.h", "the words of the closed enums"),
    ("exporter/web/", "detectors/families/family_names.h", "the closed list of families"),
    ("exporter/metrics/", "detectors/verdict_words.h", "the words of the closed enums"),
]

# One library, one room: include pattern -> where it may stand.
LIBRARIES = [
    (r"(bpf/(?!events/)|libelf|gelf\.h|elf\.h|.*\.skel\.h)", ["exporter/probes/"]),
    (r"sys/capability\.h", ["exporter/privileges"]),
    (r"(nvml\.h|exporter/collectors/nvml_)", ["exporter/collectors/nvml"]),
    (r"yaml-cpp/", ["exporter/config"]),
    (r"(boost/|openssl/)", ["exporter/http/"]),
    (r"prometheus/", ["exporter/metrics/"]),
    (r"zlib\.h", ["exporter/http/compression", "exporter/kept_file"]),
    (r"curl/", ["exporter/fleet/http_client", "exporter/notify/http_client"]),
    (r"(spdlog|fmt)/", ["exporter/"]),
    (r"re2/", ["detectors/logs/"]),
    (r"CLI/", ["exporter/cli/", "exporter/main.cc"]),
    (r"google/protobuf/", ["detectors/recording", "detectors/engine", "detectors/verdict", "detectors/utf8_message", "exporter/metrics/"]),
    (r"nlohmann/", ["exporter/", "detectors/recording"]),
    (r"simdjson\.h", ["exporter/slurm/json_records"]),
]

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
    return max((room for room in ALLOWED if path.startswith(room)), key=len)


def excepted(path, header):
    return any(path.startswith(room) and header.startswith(prefix) for room, prefix, _ in EXCEPTIONS)


def test_rooms_include_what_they_may():
    findings = []
    for path, header in includes():
        if not header.startswith(("detectors/", "exporter/", "bpf/", "tests/")):
            continue
        if header.startswith("bpf/") and not (ROOT / header).is_file():
            continue  # libbpf's
        room = room_of(path)
        allowed = ALLOWED[room] + [room]
        if path.startswith("exporter/") and room != "exporter/" or path.startswith("detectors/"):
            if not header.startswith(tuple(allowed)) and not excepted(path, header):
                findings.append(f"{path} includes {header}; {room} may include only {', '.join(allowed)}")
        if header.startswith("tests/"):
            findings.append(f"{path} includes {header}: the product knows no tests")
    return findings


def test_one_library_one_room():
    findings = []
    for path, header in includes():
        for pattern, rooms in LIBRARIES:
            if re.match(pattern, header) and not path.startswith(tuple(rooms)):
                findings.append(f"{path} includes {header}, which belongs to {', '.join(rooms)}")
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


def test_exceptions_are_used():
    """An exception that nobody needs any more is deleted."""
    used = set()
    for path, header in includes():
        for row in EXCEPTIONS:
            if path.startswith(row[0]) and header.startswith(row[1]):
                used.add(row)
    return [f"no file of {room} includes {header} any more; delete its exception"
            for room, header, why in EXCEPTIONS if (room, header, why) not in used]


if __name__ == "__main__":
    main(globals())
