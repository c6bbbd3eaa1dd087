// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How a shell, make, time, xargs or systemd says that its child was ended by a signal. Each has a
// grammar of its own for the same fact; words outside of these grammars are prose.
#include <algorithm>

#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/failures/shape_groups.h"
#include "detectors/model/ascii.h"
#include "detectors/model/subs.h"

namespace rankscope::logs {
namespace {

constexpr std::string_view kShellAnchors[] = {"Killed",
                                              "Segmentation fault",
                                              "Aborted",
                                              "Bus error",
                                              "Illegal instruction",
                                              "Terminated",
                                              "Memory fault",
                                              "User defined signal ",
                                              "Floating point exception",
                                              "(core dumped)",
                                              " Hangup",
                                              " time limit exceeded",
                                              "(coredump)",
                                              " size limit exceeded",
                                              "Trace/breakpoint trap"};
constexpr std::string_view kZshAnchors[] = {
    "zsh: ", " killed ", " terminated ", " segmentation fault ", " abort ", " bus error "};
constexpr std::string_view kFishAnchors[] = {"terminated by signal "};
constexpr std::string_view kMakeAnchors[] = {": *** ["};
constexpr std::string_view kEndAnchors[] = {"Process finished with exit code ",
                                            "Exited with exit code ",
                                            "a non-zero status of ",
                                            "non-zero exit code: ",
                                            "exited with non-zero status ",
                                            "died from signal "};
constexpr std::string_view kKubectlAnchors[] = {"command terminated with exit code "};
constexpr std::string_view kSystemdAnchors[] = {": Main process exited, code=",
                                                " has been killed by the OOM killer."};

struct WordRow {
  std::string_view text;
  int32_t signal;
};
// zsh words signals in its own way, in its own lines and in those of its job control.
constexpr WordRow kZsh[] = {
    {"killed ", 9},    {"segmentation fault ", 11},          {"abort ", 6},
    {"bus error ", 7}, {"illegal hardware instruction ", 4}, {"terminated ", 15}};

// What scripts start beside a run and stop when it is over: the shell reports their end in the same
// words.
bool IsHelper(std::string_view command) {
  static constexpr std::string_view kBefore[] = {"nohup ", "exec ", "sudo ", "(", "{", " "};
  static constexpr std::string_view kHelpers[] = {
      "nvidia-smi", "dcgmi",   "rocm-smi",    "amd-smi",    "nvtop", "gpustat", "tail",
      "watch",      "while",   "sleep",       "top",        "htop",  "vmstat",  "iostat",
      "mpstat",     "pidstat", "sar",         "dstat",      "free",  "ssh",     "socat",
      "rsync",      "tee",     "tensorboard", "inotifywait"};
  for (bool stripped = true; stripped;) {
    stripped = false;
    for (const std::string_view before : kBefore) {
      if (!command.starts_with(before)) continue;
      command.remove_prefix(before.size());
      stripped = true;
    }
  }
  std::string_view word = command.substr(0, command.find_first_of(" ;|&>)"));
  if (const size_t slash = word.rfind('/'); slash != std::string_view::npos)
    word.remove_prefix(slash + 1);
  return std::find(std::begin(kHelpers), std::end(kHelpers), word) != std::end(kHelpers);
}

Incident Death(const CleanLine& line, std::string_view shape, int32_t signal, int64_t pid,
               std::string_view command) {
  Incident incident = MakeIncident(IncidentKind::kSignalDeath, line, shape);
  if (pid > 0 && pid < (int64_t{1} << 31)) incident.pid = static_cast<int32_t>(pid);
  SetSignal(incident, signal);
  if (IsHelper(command)) incident.role = Role::kAdvice;
  return incident;
}

// What somebody tells of a child's exit status, which may be a shell's code for a signal.
Incident Exit(const CleanLine& line, std::string_view shape, int32_t code) {
  constexpr int32_t kSignals = 128;
  Incident incident = MakeIncident(IncidentKind::kNonZeroExit, line, shape);
  incident.role = Role::kWrapper;
  if (code > kSignals && code <= kSignals + 31) {
    incident.kind = IncidentKind::kSignalDeath;
    SetSignal(incident, code - kSignals);
  } else {
    incident.exit_code = code;
  }
  return incident;
}

// A pid at the head of the text, ksh with a colon behind it; 0 where there is none.
int64_t TakePid(std::string_view& text) {
  const std::string_view digits = NumberText(text);
  if (digits.empty() || digits.size() >= text.size()) return 0;
  const int64_t pid = LeadingInt(digits).value_or(0);
  text.remove_prefix(digits.size());
  if (text.starts_with(":")) text.remove_prefix(1);
  text = TrimLeft(text);
  return pid;
}

// "[1]+  " and "[1]  + " of job control; false where the line has none.
bool TakeJob(std::string_view& text) {
  if (!text.starts_with("[") || !IsDigits(Between(text, "[", "]"))) return false;
  text = TrimLeft(After(text, "]"));
  if (text.starts_with("+") || text.starts_with("-")) text = TrimLeft(text.substr(1));
  return true;
}

// strsignal()'s words, ksh's for one of them.
int32_t SignalOfWords(std::string_view text) {
  return text.starts_with("Memory fault") ? 11 : SignalOfDescription(text);
}

// "[1]  " of job control, "script.sh: line 3: ", "bash: line 3: ", then perhaps a pid, then
// strsignal()'s words, perhaps "(core dumped)", perhaps the command. Words elsewhere in a line ("3
// jobs Killed by user") are prose.
void ParseShell(const CleanLine& line, RecordList& out) {
  std::string_view text = Trim(line.text);
  bool from_shell = false;
  // The shell's name is a path without spaces.
  const size_t marker = text.find(": line ");
  if (marker != std::string_view::npos && text.find(' ') == marker + 1) {
    const std::string_view rest = text.substr(marker + 7);
    const size_t colon = rest.find(": ");
    if (colon != std::string_view::npos && IsDigits(rest.substr(0, colon))) {
      text = TrimLeft(rest.substr(colon + 2));
      from_shell = true;
    }
  } else {
    from_shell = TakeJob(text);
  }
  const int64_t pid = from_shell ? TakePid(text) : 0;
  const int32_t signal = SignalOfWords(text);
  static constexpr int32_t kDeadly[] = {1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 24, 25};
  if (std::find(std::begin(kDeadly), std::end(kDeadly), signal) == std::end(kDeadly)) return;
  const bool dumped = ContainsAny(text, {"(core dumped)", "(coredump)"});
  const size_t spaces = text.find("  ");
  const std::string_view words = Trim(Before(text.substr(0, spaces), "(core"));
  if (from_shell) {
    std::string_view command =
        spaces == std::string_view::npos ? std::string_view() : TrimLeft(text.substr(spaces));
    if (command.starts_with("(core dumped)")) command = TrimLeft(command.substr(13));
    Incident incident = Death(line, "shell_signal", signal, pid, command);
    if (dumped) AddField(incident, "core", "yes");
    // Who reads the end of a step may want to know that it was srun itself.
    if (const std::string_view word = LeadingWord(command);
        word == "srun" || word.ends_with("/srun"))
      AddField(incident, "program", "srun");
    out.push_back(std::move(incident));
    return;
  }
  // Without the shell's own prefix (dash, or bash where its child was the last command) only the
  // whole line counts: the words, and "(core dumped)". Programs may say these of themselves too.
  static constexpr std::string_view kBare[] = {
      "Killed",    "Segmentation fault",  "Aborted",      "Terminated",
      "Bus error", "Illegal instruction", "Memory fault", "Floating point exception"};
  if (std::find(std::begin(kBare), std::end(kBare), words) == std::end(kBare)) return;
  if (Trim(Before(text, "(core")) != words) return;
  Incident incident = Death(line, "shell_signal", signal, 0, {});
  incident.sub = subs::kBare;
  if (dumped) AddField(incident, "core", "yes");
  out.push_back(std::move(incident));
}

// "zsh: killed     python fit.py", "[1]  + 4711 terminated  python fit.py"
void ParseZsh(const CleanLine& line, RecordList& out) {
  std::string_view text = line.text;
  int64_t pid = 0;
  if (text.starts_with("zsh: ")) {
    text.remove_prefix(5);
  } else if (!TakeJob(text) || (pid = TakePid(text)) == 0) {
    return;
  }
  for (const WordRow& row : kZsh) {
    if (!text.starts_with(row.text)) continue;
    std::string_view command = TrimLeft(text.substr(row.text.size()));
    if (command.starts_with("(core dumped)")) command = TrimLeft(command.substr(13));
    out.push_back(Death(line, "zsh_signal", row.signal, pid, command));
    return;
  }
}

// "fish: Job 1, 'python fit.py' terminated by signal SIGKILL (Forced quit)"; GNU time's "Command
// terminated by signal 9"; "xargs: python: terminated by signal 11".
void ParseTerminatedBy(const CleanLine& line, RecordList& out) {
  const std::string_view text = TrimLeft(line.text);
  const std::string_view told = After(text, "terminated by signal ");
  int32_t signal = 0;
  if (text.starts_with("fish: ")) {
    signal = SignalNumber(LeadingWord(told));
  } else if (text.starts_with("Command terminated by") || text.starts_with("xargs: ")) {
    const auto number = LeadingInt(told);
    if (number && *number > 0 && *number < 65) signal = static_cast<int32_t>(*number);
  }
  if (signal == 0) return;
  out.push_back(Death(line, "terminated_by", signal, 0, {}));
}

// "make: *** [Makefile:3: train] Killed", "make[1]: *** [train] Error 137"
void ParseMake(const CleanLine& line, RecordList& out) {
  const std::string_view text = TrimLeft(line.text);
  if (!text.starts_with("make: ") && !text.starts_with("make[")) return;
  const std::string_view end = After(text, "] ");
  if (Contains(end, "(ignored)")) return;
  if (const int32_t signal = SignalOfDescription(end); signal != 0) {
    out.push_back(Death(line, "make", signal, 0, {}));
    return;
  }
  const auto code = IntAfter(end, "Error ");
  if (!end.starts_with("Error ") || !code || *code <= 0 || *code > 255) return;
  out.push_back(Exit(line, "make", static_cast<int32_t>(*code)));
}

// kubectl exec's last line: "command terminated with exit code 137".
void ParseKubectl(const CleanLine& line, RecordList& out) {
  const std::string_view told = After(line.text, "command terminated with exit code ");
  const auto code = LeadingInt(told);
  if (!code || *code <= 0 || *code > 255 || !IsDigits(Trim(told))) return;
  out.push_back(Exit(line, "kubectl", static_cast<int32_t>(*code)));
}

// What others print of a program's end: PyCharm ("Process finished with exit code 137 (interrupted
// by signal 9: SIGKILL)"), LSF ("Exited with exit code 139."), PALS ("n1: rank 3 died from signal
// 9"), Vertex AI and Determined ("exited with a non-zero status of 137", "non-zero exit code:
// 137").
void ParseEnd(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  if (Contains(text, "srun:") || IsRetry(text)) return;
  if (const auto signal = IntAfter(text, "died from signal ");
      signal && *signal > 0 && *signal <= 64) {
    Incident incident = Death(line, "end_told", static_cast<int32_t>(*signal), 0, {});
    if (const auto rank = IntAfter(text, ": rank "); rank && *rank >= 0 && *rank < (1 << 24))
      incident.rank = static_cast<int32_t>(*rank);
    out.push_back(std::move(incident));
    return;
  }
  for (const std::string_view anchor : kEndAnchors) {
    const auto code = IntAfter(text, anchor);
    if (!code || *code <= 0 || *code > 255) continue;
    const auto status = static_cast<int32_t>(*code);
    Incident incident = Exit(line, "end_told", status);
    // LSF ends a job at its limit by SIGUSR2, whose code says nothing of the program.
    if (CrashOfExitCode(status) == 0) {
      incident.kind = IncidentKind::kNonZeroExit;
      incident.signal = 0;
      std::erase_if(incident.fields, [](const KeyValue& field) { return field.key == "signal"; });
      incident.exit_code = status;
    }
    out.push_back(std::move(incident));
    return;
  }
}

// "systemd[1]: fit.service: Main process exited, code=killed, status=9/KILL", "fit.service: A
// process of this unit has been killed by the OOM killer."
void ParseSystemd(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  if (Contains(text, " of this unit has been killed by the OOM killer.")) {
    Incident incident = MakeIncident(IncidentKind::kHostOom, line, "systemd");
    incident.sub = "cgroup";
    out.push_back(std::move(incident));
    return;
  }
  const std::string_view told = After(text, ": Main process exited, code=");
  if (!told.starts_with("killed,") && !told.starts_with("dumped,")) return;
  const auto signal = IntAfter(told, "status=");
  if (!signal || *signal <= 0 || *signal > 64) return;
  out.push_back(Death(line, "systemd", static_cast<int32_t>(*signal), 0, {}));
}

constexpr ShapeRow kRows[] = {
    {"shell_signal", "a shell reports a child killed by a signal", kShellAnchors, ParseShell,
     "launch.sh: line 42: 90817 Killed                  python finetune.py --bf16"},
    {"zsh_signal", "zsh reports a child killed by a signal", kZshAnchors, ParseZsh,
     "zsh: segmentation fault (core dumped)  python demo.py"},
    {"terminated_by", "fish, time or xargs report a child killed by a signal", kFishAnchors,
     ParseTerminatedBy, "fish: Job 2, 'python fit.py' terminated by signal SIGKILL (Forced quit)"},
    {"make", "make reports how its recipe ended", kMakeAnchors, ParseMake,
     "make: *** [Makefile:12: pretrain] Killed"},
    {"kubectl", "kubectl reports how its command ended", kKubectlAnchors, ParseKubectl,
     "command terminated with exit code 137"},
    {"end_told", "an editor or a batch system reports how a program ended", kEndAnchors, ParseEnd,
     "Process finished with exit code 137 (interrupted by signal 9: SIGKILL)"},
    {"systemd", "systemd reports how a unit's process ended", kSystemdAnchors, ParseSystemd,
     "systemd[1]: fit.service: Main process exited, code=killed, status=9/KILL"},
};

}  // namespace

std::span<const ShapeRow> ShellShapes() {
  return kRows;
}

}  // namespace rankscope::logs
