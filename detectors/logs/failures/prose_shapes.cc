// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "detectors/logs/failures/exception_rows.h"
#include "detectors/logs/failures/exception_text.h"
#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/failures/shape_groups.h"
#include "detectors/logs/text/number.h"
#include "detectors/model/ascii.h"
#include "detectors/model/subs.h"

namespace rankscope::logs {
namespace {

constexpr std::string_view kExceptionAnchors[] = {"Error:",      "Exception: ", "KeyboardInterrupt",
                                                  "Timeout: ",   "Failure: ",   "Interrupt: ",
                                                  "MemoryError", "NotFound: "};
constexpr std::string_view kUsageAnchors[] = {": error: ",
                                              "Error: No such option",
                                              "Error: Missing option",
                                              "Error: Invalid value",
                                              "Error: Got unexpected",
                                              "Error: No such command",
                                              "Error: Missing argument",
                                              "│ No such option",
                                              "│ No such command",
                                              "│ Missing option",
                                              "│ Missing argument",
                                              "│ Invalid value for ",
                                              "│ Got unexpected extra ",
                                              "│ Unrecognized option",
                                              "│ Unrecognized or misplaced",
                                              "│ The following arguments are required",
                                              "Flags parsing error:",
                                              "Could not override '",
                                              "Cannot find primary config",
                                              "Error merging override ",
                                              "Missing mandatory value: ",
                                              "Could not find '",
                                              "Key '"};
constexpr std::string_view kStartAnchors[] = {"can't open file '",
                                              ": No module named ",
                                              ": bad interpreter: ",
                                              "Error while finding module",
                                              ": command not found",
                                              ": error while loading shared libraries: ",
                                              ": symbol lookup error: ",
                                              ": relocation error: ",
                                              "' not found (required by ",
                                              "cannot execute binary file: Exec format error",
                                              "MKL FATAL ERROR: Cannot load ",
                                              "Could not load library libcudnn",
                                              "env: "};
constexpr std::string_view kNanAnchors[] = {"topping training",
                                            "topping the training",
                                            "loss is nan",
                                            "Loss is nan",
                                            "loss is NaN",
                                            "Loss is NaN",
                                            "on-finite",
                                            "onfinite",
                                            "ot finite",
                                            "nfinite",
                                            "nvalid loss",
                                            "diverged",
                                            " NaN",
                                            " nan",
                                            "minimum - cannot decrease scale"};

// A line that is an exception's last line, but no traceback came with it: a handler printed it, or
// rich drew the frames.
void ParseException(const CleanLine& line, RecordList& out) {
  const std::string_view text = TrimRight(line.text);
  ExceptionLine exception = ParseExceptionLine(text, false);
  const std::string_view head = Before(text, ": ");
  if (exception.type.empty() && IsCondas(head, {})) exception = {head, After(text, ": ")};
  if (exception.type.empty() || IsRetry(line.text)) return;
  Incident incident = MakeIncident(IncidentKind::kException, line, "lone_exception");
  incident.exception_type = exception.type;
  incident.message = Capped(exception.message, kMessageCap);
  incident.frame = FrameKindOfMessage(exception.type, exception.message);
  ClassifyText(exception.message, incident);
  if (IsCondas(exception.type, exception.message)) AddField(incident, "tool", "conda");
  out.push_back(std::move(incident));
}

// argparse: "prog: error: text", the program a word without spaces at the line's head. Compilers
// and linkers print "file.c:3:1: error:" and daemons "srun: error:" in the same grammar, so the
// words behind must be argparse's. typer and tyro draw click's and argparse's words into a panel.
void ParseUsage(const CleanLine& line, RecordList& out) {
  static constexpr std::string_view kWords[] = {
      "unrecognized arguments", "the following arguments are required",
      "invalid choice",         "expected one argument",
      "expected at least",      "invalid int value",
      "invalid float value",    "ambiguous option",
      "not allowed with",       "argument -",
      "one of the arguments",   "arguments are required",
      "too few arguments",      "Parser key ",
      "Validation failed: ",    "is required"};
  static constexpr std::string_view kClick[] = {
      "Error: No such option",      "Error: Missing option",   "Error: Invalid value",
      "Error: Got unexpected",      "Error: No such command",  "FATAL Flags parsing error:",
      "Cannot find primary config", "Error merging override ", "Missing mandatory value: ",
      "Error: Missing argument"};
  static constexpr std::string_view kPanel[] = {
      "No such option",      "No such command",       "Missing option",
      "Missing argument",    "Invalid value for ",    "Got unexpected extra ",
      "Unrecognized option", "Unrecognized or mispl", "The following arguments are required"};
  const std::string_view text = line.text;
  const size_t at = text.find(": error: ");
  const std::string_view program = text.substr(0, at);
  const bool argparse = at != std::string_view::npos && !program.empty() &&
                        program.find(' ') == std::string_view::npos &&
                        ContainsAny(text.substr(at), kWords);
  const bool click =
      std::any_of(std::begin(kClick), std::end(kClick),
                  [text](std::string_view start) { return text.starts_with(start); });
  const bool hydra = text.starts_with("Could not override '") ||
                     (text.starts_with("Key '") && Contains(text, "' is not in struct")) ||
                     (text.starts_with("In '") && Contains(text, ": Could not find '"));
  constexpr std::string_view kSide = "│";
  std::string_view inside = text.starts_with(kSide) ? text.substr(kSide.size()) : "";
  if (TrimRight(inside).ends_with(kSide))
    inside = TrimRight(inside).substr(0, TrimRight(inside).size() - kSide.size());
  inside = Trim(inside);
  const bool panel =
      std::any_of(std::begin(kPanel), std::end(kPanel),
                  [inside](std::string_view start) { return inside.starts_with(start); });
  if (!argparse && !click && !hydra && !panel) return;
  Incident incident = MakeIncident(IncidentKind::kUsageError, line, "usage_error");
  incident.frame = FrameKind::kConfig;
  if (argparse) incident.message = Capped(text.substr(at + 9), kMessageCap);
  if (panel) incident.message = Capped(inside, kMessageCap);
  out.push_back(std::move(incident));
}

// Programs that start or are a training. A script also calls others, which may fail and change
// nothing: nvidia-smi, module, conda.
bool StartsTraining(std::string_view program) {
  static constexpr std::string_view kPrograms[] = {"python", "torchrun", "accelerate", "deepspeed",
                                                   "srun",   "mpirun",   "horovodrun"};
  if (program.starts_with("./")) return true;
  const size_t slash = program.rfind('/');
  const std::string_view name = program.substr(slash == std::string_view::npos ? 0 : slash + 1);
  return std::any_of(std::begin(kPrograms), std::end(kPrograms),
                     [name](std::string_view known) { return name.starts_with(known); });
}

// Libraries that load their parts when these are first used, and end the process where one is
// missing: MKL's kernels for a processor, cuDNN's sub-libraries.
bool MissesItsPart(std::string_view text) {
  return ContainsAny(text, {"MKL FATAL ERROR: Cannot load ", "Could not load library libcudnn"});
}

// The dynamic loader of glibc (elf/rtld.c, elf/dl-error) before main(), a binary of another
// machine, and coreutils' env: "python: error while loading shared libraries: libx.so.1: ...".
bool FailsToLoad(std::string_view text) {
  const std::string_view program = Before(text, ": ");
  if (program.find(' ') == std::string_view::npos && StartsTraining(program)) {
    const std::string_view words = text.substr(program.size());
    const bool version = words.starts_with(": /") && Contains(words, ": version `") &&
                         Contains(words, "' not found (required by ");
    if (version || words.starts_with(": error while loading shared libraries: ") ||
        words.starts_with(": symbol lookup error: ") || words.starts_with(": relocation error: "))
      return true;
  }
  constexpr std::string_view kNoFile = ": No such file or directory";
  if (text.starts_with("env: ") || text.starts_with("/usr/bin/env: ")) {
    std::string_view name = After(text, "env: ");
    if (!name.ends_with(kNoFile)) return false;  // "env: No such file or directory" names nothing
    name.remove_suffix(kNoFile.size());
    for (const std::string_view quote : {"'", "‘"}) {
      if (name.starts_with(quote)) name.remove_prefix(quote.size());
    }
    return StartsTraining(name);
  }
  return text.ends_with(": cannot execute binary file: Exec format error");
}

// The interpreter or the shell cannot even start the program.
void ParseStart(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  const std::string_view program = Before(text, ": ");
  const bool python = program.find(' ') == std::string_view::npos && Contains(program, "python");
  const bool no_file = python && Contains(text, ": can't open file '");
  const bool no_module =
      python && ContainsAny(text, {": No module named ", ": Error while finding module"});
  bool no_command = false;
  if (text.ends_with(": command not found")) {
    std::string_view name = text.substr(0, text.size() - 19);
    name = name.substr(name.rfind(' ') == std::string_view::npos ? 0 : name.rfind(' ') + 1);
    no_command = StartsTraining(name);
  }
  no_command = no_command || Contains(text, ": bad interpreter: ");
  const bool no_library = FailsToLoad(text) || MissesItsPart(text);
  if (!no_file && !no_module && !no_command && !no_library) return;
  Incident incident = MakeIncident(IncidentKind::kUsageError, line, "cannot_start");
  incident.frame = no_module || no_library ? FrameKind::kImport : FrameKind::kConfig;
  incident.sub = no_file      ? "no_file"
                 : no_module  ? "no_module"
                 : no_library ? "no_library"
                              : "no_command";
  out.push_back(std::move(incident));
}

// `word` with no letter or digit on either side: "nan" in "Inf/NaN" and not in "finance".
bool HasWord(std::string_view text, std::string_view word) {
  const auto inside = [](char c) { return IsLetter(c) || IsDigit(c) || c == '_'; };
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !inside(text[at - 1])) && (end == text.size() || !inside(text[end])))
      return true;
  }
  return false;
}

// A loss, a gradient or what a callback watches is no number, whatever the program calls that:
// `lower` in small letters.
bool SaysNotFinite(std::string_view lower) {
  static constexpr std::string_view kWords[] = {
      "nan",          "nans",       "inf",         "infs",       "infinite",
      "infinity",     "non-finite", "nonfinite",   "not finite", "non finite",
      "not a number", "diverged",   "invalid loss"};
  const bool subject = ContainsAny(lower, {"loss", "grad", "metric", "training"});
  return subject && std::any_of(std::begin(kWords), std::end(kWords),
                                [lower](std::string_view one) { return HasWord(lower, one); });
}

// The words loops print before they give up on a loss: "Loss is nan, stopping training", "Batch 4:
// Invalid loss, terminating training", "Monitored metric loss = nan is not finite. ... Signaling
// Trainer to stop."
void ParseNan(const CleanLine& line, RecordList& out) {
  constexpr size_t kLongest = 400;
  const std::string lower = LowerAscii(Capped(line.text, kLongest));
  const bool scale = Contains(lower, "loss scale already at minimum");
  const bool ends =
      ContainsAny(lower, {"stopping", "exiting", "aborting", "terminating", "halting", "quitting",
                          "giving up", "stop training", "training stopped", "stopped training",
                          "trainer to stop", "cannot continue"});
  if (!scale && !(ends && SaysNotFinite(lower))) return;
  // Conditions, settings, a counter that runs; a step that is left out is none that ends.
  if (ContainsAny(lower, {"if loss", "if the loss", "if grad", "when loss", "when the loss",
                          "when grad", "if nan", "on nan", "will ", "would ", "enabled", "disabled",
                          "patience", "counter", "skip", "ignor", "nan-safe", "without "}))
    return;
  if (HasOwnRow(line.text)) return;
  Incident incident = MakeIncident(IncidentKind::kNonFiniteLoss, line, "loss_not_finite");
  if (scale) incident.sub = subs::kScaleMinimum;
  out.push_back(std::move(incident));
}

constexpr ShapeRow kRows[] = {
    {"lone_exception", "an exception's last line without its traceback", kExceptionAnchors,
     ParseException, "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.25 GiB"},
    {"usage_error", "a program refuses its arguments", kUsageAnchors, ParseUsage,
     "pretrain.py: error: unrecognized arguments: --warmup-steps 20"},
    {"cannot_start", "the interpreter or the shell cannot start the program", kStartAnchors,
     ParseStart,
     "/opt/py/bin/python3: can't open file '/home/u/trian.py': [Errno 2] No such file or "
     "directory"},
    {"loss_not_finite", "a training loop gives up on its loss", kNanAnchors, ParseNan,
     "Loss is nan at step 350, stopping training"},
};

}  // namespace

namespace {

// DeepSpeed: "Current loss scale already at minimum - cannot decrease scale anymore", fairseq:
// "Minimum loss scale reached (0.0001)". Trainers of one's own say it in other words; whoever
// checks an argument raises one of Python's errors of arguments.
bool SaysScaleAtMinimum(std::string_view text, std::string_view exception) {
  for (const std::string_view argument :
       {"ValueError", "TypeError", "KeyError", "AttributeError"}) {
    if (exception.ends_with(argument)) return false;
  }
  const std::string lower = LowerAscii(Capped(text, 400));
  return lower.find("loss scale") != std::string::npos &&
         lower.find("minimum") != std::string::npos &&
         !ContainsAny(lower, {"must", "should", "invalid", "expected", "cannot set"});
}

// A loop raises because of its own loss or gradient: "Non-finite loss", "Loss became infinite or
// NaN at iteration=7!", "The total norm of order 2.0 for gradients from `parameters` is
// non-finite". Whoever checks an argument or its input says what it must be.
bool RefusesNonFinite(std::string_view text) {
  constexpr size_t kLongest = 400;
  const std::string lower = LowerAscii(Capped(text, kLongest));
  if (ContainsAny(lower, {"must", "should", "expected", "argument", "contains nan, inf", "input ",
                          "column", "dtype", "parameter ", "config"}))
    return false;
  return SaysNotFinite(lower) && ContainsAny(lower, {"loss", "grad", "training has"});
}

}  // namespace

bool ReadNonFinite(std::string_view text, Incident& incident) {
  static constexpr std::string_view kTexts[] = {
      "found NaN in local",
      "found Inf in local",
      "returned nan values in its",
      "is nan or inf",
      "Detected nan and/or inf values in",   // Lightning's detect_nan_parameters()
      "invalid value (nan) encountered in",  // jax_debug_nans
      "invalid value (inf) encountered in",
      "NaN loss during training",  // TensorFlow's NanTensorHook
  };
  if (incident.exception_type.empty()) return false;
  const bool scale = SaysScaleAtMinimum(text, incident.exception_type);
  if (!scale && !ContainsAny(text, kTexts) && !RefusesNonFinite(text)) return false;
  incident.kind = IncidentKind::kNonFiniteLoss;
  if (scale) incident.sub = subs::kScaleMinimum;
  return true;
}

std::span<const ShapeRow> ProseShapes() {
  return kRows;
}

}  // namespace rankscope::logs
