// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What programs say of their own training besides its records: a loss scale that is lowered, a
// checkpoint of which only a part was restored or that is refused, compilers and their locks,
// collectives that do not match, storage that does not answer.
#include <algorithm>

#include "detectors/logs/failures/exception_text.h"
#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/failures/shape_groups.h"
#include "detectors/logs/progress/progress_fields.h"
#include "detectors/logs/text/number.h"
#include "detectors/model/subs.h"

namespace rankscope::logs {
namespace {

// A sentence inside quotes is a source or a configuration being printed.
bool IsQuoted(std::string_view text, std::string_view phrase) {
  const std::string_view before = Before(text, phrase);
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i] != '\'') continue;
    const bool apostrophe =
        i > 0 && i + 1 < before.size() && IsLetter(before[i - 1]) && IsLetter(before[i + 1]);
    if (!apostrophe) return true;
  }
  return ContainsAny(before, {"\"", "print", "raise ", "logger."});
}

// DeepSpeed: "Attempted loss scale: 65536, reducing to 32768"; apex: "loss scaler 0 reducing loss
// scale to 32768.0"; fairseq: "overflow detected, setting loss scale to: 64.0".
constexpr std::string_view kScaleAnchors[] = {"Attempted loss scale: ", "reducing loss scale to ",
                                              "setting loss scale to: "};

void ParseScale(const CleanLine& line, RecordList& out) {
  std::string_view rest = After(line.text, "Attempted loss scale: ");
  if (!rest.empty()) {
    rest = After(rest, "reducing to ");
  } else {
    rest = After(line.text, "reducing loss scale to ");
    if (rest.empty()) rest = After(line.text, "setting loss scale to: ");
  }
  const Number scale = ReadNumber(TrimLeft(rest), Ending::kDelimiter, Thousands::kNo);
  if (!scale || IsQuoted(line.text, "loss scale")) return;
  out.push_back(MakeMarker(MarkerKind::kLossScale, "loss_scale", line, {}, scale.value));
}

// Hand-written loops and libraries word it freely: the thing, and that it was not restored.
constexpr std::string_view kPartAnchors[] = {"ptimizer state",
                                             "ptimizer_state",
                                             "cheduler state",
                                             "optimizer from checkpoint",
                                             "RNG states of",
                                             "IncompatibleKeys(",
                                             "missing keys in the checkpoint model loaded",
                                             "scheduler from checkpoint"};

constexpr std::string_view kNotRestored[] = {
    "not load",        "Failed to load",    "failed to load",
    "not restored",    "not found",         "nable to load",
    "will be reset",   "being reset",       "reinitializ",
    "re-initializ",    "Skipping",          "skipping",
    "ot restoring",    "start fresh",       "starting fresh",
    "from scratch",    "s missing",         "missing from",
    "set back the",    "not in checkpoint", "not in the checkpoint",
    "reset optimizer", "Resetting",         "resetting"};

// What a strict=False load reports, when it is not empty: "_IncompatibleKeys(missing_keys=['a',
// ..".
bool MissesWeights(std::string_view text) {
  const std::string_view missing = After(text, "IncompatibleKeys(missing_keys=[");
  if (!missing.empty() && missing.front() != ']') return true;
  const std::string_view keys = After(text, "missing keys in the checkpoint model loaded: [");
  if (keys.empty() || keys.front() == ']') return false;
  // Weights that are tied to others are left out of the file on purpose.
  const std::string_view list = Before(keys, "]");
  return std::count(list.begin(), list.end(), ',') > 0 || !Contains(list, "lm_head");
}

void ParsePart(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  if (HasOwnRow(text) || text.size() > 4000) return;
  std::string_view part;
  if (ContainsAny(text, {"IncompatibleKeys(", "missing keys in the checkpoint model loaded"})) {
    if (MissesWeights(text)) part = "weights";
  } else if (!ContainsAny(text, kNotRestored) || Contains(text, "exiting")) {
    return;
  } else if (Contains(text, "ptimizer")) {
    part = "optimizer";
  } else if (Contains(text, "cheduler")) {
    part = "scheduler";
  } else {
    part = "rng";
  }
  if (part.empty() || (part != "weights" && IsQuoted(text, "tate"))) return;
  out.push_back(MakeMarker(MarkerKind::kPartialLoad, "partial_load", line, part));
}

// Megatron-LM: "WARNING: could not find the metadata file DIR/latest_checkpointed_iteration.txt".
constexpr std::string_view kMetadataAnchors[] = {"could not find the metadata file "};

void ParseMetadata(const CleanLine& line, RecordList& out) {
  const std::string_view path = LeadingWord(TrimLeft(After(line.text, kMetadataAnchors[0])));
  if (path.empty() || IsQuoted(line.text, kMetadataAnchors[0])) return;
  out.push_back(MakeMarker(MarkerKind::kNoCheckpoint, "no_metadata", line, path));
}

// Megatron-LM's checkpointing.py prints these and leaves with exit().
constexpr std::string_view kRefusedAnchors[] = {"Unable to load optimizer from checkpoint",
                                                "Unable to load rng state from checkpoint",
                                                "set ... exiting. <<"};

void ParseRefused(const CleanLine& line, RecordList& out) {
  if (!Contains(line.text, "exiting") || IsQuoted(line.text, "exiting")) {
    if (!Contains(line.text, "--exit-on-missing-checkpoint")) return;
  }
  Incident incident = MakeIncident(IncidentKind::kException, line, "load_refused");
  incident.frame = FrameKind::kCheckpointLoad;
  incident.message = Capped(Trim(line.text), kMessageCap);
  out.push_back(std::move(incident));
}

struct CompileRow {
  std::string_view phrase;
  std::string_view what;
  bool begins;
};
// torch.utils.cpp_extension, Megatron-LM's fused kernels, XLA's slow operation alarm, and
// torch.utils.file_baton's and filelock's words of a lock that somebody else holds.
constexpr CompileRow kCompile[] = {
    {"as PyTorch extensions root...", "torch extension", true},
    {"Building extension module ", "torch extension", true},
    {"Emitting ninja build file ", "torch extension", true},
    {"> compiling and loading fused kernels", "fused kernels", true},
    {"> compiling dataset index builder", "dataset index builder", true},
    {"Very slow compile?", "XLA", true},
    {"Waited on lock file ", "lock", true},
    {"aiting on lock ", "lock", true},
    {"aiting for lock on ", "lock", true},
    {"aiting to acquire lock", "lock", true},
    {"Loading extension module ", "torch extension", false},
    {"Time to load ", "torch extension", false},
    {">>> done with compiling and loading fused kernels", "fused kernels", false},
    {">>> done with dataset index builder", "dataset index builder", false},
};
constexpr std::string_view kCompileAnchors[] = {"as PyTorch extensions root...",
                                                "Building extension module ",
                                                "Emitting ninja build file ",
                                                "compiling and loading fused kernels",
                                                "compiling dataset index builder",
                                                "done with dataset index builder",
                                                "Very slow compile?",
                                                "Waited on lock file ",
                                                "aiting on lock ",
                                                "aiting for lock on ",
                                                "aiting to acquire lock",
                                                "Loading extension module ",
                                                "Time to load "};

void ParseCompile(const CleanLine& line, RecordList& out) {
  for (const CompileRow& row : kCompile) {
    if (!Contains(line.text, row.phrase)) continue;
    if (row.phrase == "Time to load " && !Contains(line.text, " op: ")) return;
    if (row.what != "lock" && IsQuoted(line.text, row.phrase)) return;
    out.push_back(MakeMarker(row.begins ? MarkerKind::kCompileBegin : MarkerKind::kCompileEnd,
                             "compile", line, row.what));
    return;
  }
}

// NCCL's device side found that its peers run something else (init.cc, ncclDevAssertedMismatch).
constexpr std::string_view kMismatchAnchors[] = {"NCCL WARN Mismatched collective detected"};

void ParseMismatch(const CleanLine& line, RecordList& out) {
  Incident incident = MakeIncident(IncidentKind::kCollectiveTimeout, line, "collective_mismatch");
  incident.sub = subs::kMismatch;
  AddField(incident, "backend", "nccl");
  if (const auto rank = IntAfter(line.text, "around rank ");
      rank && *rank >= 0 && *rank < (1 << 24))
    incident.rank = static_cast<int32_t>(*rank);
  out.push_back(std::move(incident));
}

// The kernel's words for a file server that is gone and for tasks that wait for it.
constexpr std::string_view kStallAnchors[] = {"nfs: server ", "blocked for more than ",
                                              "unexpected pos "};

void ParseStall(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  if (HasOwnRow(text)) return;
  const bool server = Contains(text, "nfs: server ") && Contains(text, " not responding");
  const bool task = Contains(text, "INFO: task ") && Contains(text, "blocked for more than ");
  const bool writer = Contains(text, "inline_container") && Contains(text, "unexpected pos ");
  if (!server && !task && !writer) return;
  Incident incident = MakeIncident(IncidentKind::kStorage, line, "storage_stall");
  incident.sub = writer ? "" : subs::kHang;
  incident.message = Capped(Trim(text), kMessageCap);
  if (server) AddField(incident, "server", LeadingWord(After(text, "nfs: server ")));
  // A task may wait for anything: it only supports what is said elsewhere.
  if (task) incident.role = Role::kCascade;
  out.push_back(std::move(incident));
}

constexpr ShapeRow kRows[] = {
    {"loss_scale", "an optimizer lowers the loss scale", kScaleAnchors, ParseScale,
     "[INFO] [loss_scaler.py:183:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. "
     "Attempted loss scale: 512, reducing to 256"},
    {"partial_load", "a part of a checkpoint is not restored", kPartAnchors, ParsePart,
     "WARNING: optimizer state not found in /ckpt/last.pt, starting fresh"},
    {"no_metadata", "Megatron-LM finds no checkpoint where it looks", kMetadataAnchors,
     ParseMetadata,
     "WARNING: could not find the metadata file /ckpt/latest_checkpointed_iteration.txt"},
    {"load_refused", "Megatron-LM refuses a checkpoint and exits", kRefusedAnchors, ParseRefused,
     "Unable to load optimizer from checkpoint /ckpt/iter_0000100/mp_rank_00. Specify "
     "--no-load-optim or --finetune to prevent attempting to load the optimizer state, exiting "
     "..."},
    {"compile", "a compiler runs, or its lock is waited for", kCompileAnchors, ParseCompile,
     "Using /home/u/.cache/torch_extensions/py310_cu121 as PyTorch extensions root..."},
    {"collective_mismatch", "NCCL finds that ranks run different collectives", kMismatchAnchors,
     ParseMismatch,
     "gx3:71:90 [1] init.cc:901 NCCL WARN Mismatched collective detected, please check your "
     "collective calls at and around rank 5."},
    {"storage_stall", "storage does not answer, or a writer lost its place", kStallAnchors,
     ParseStall, "[81231.4] nfs: server filer-2 not responding, still trying"},
};

}  // namespace

std::span<const ShapeRow> TrainingShapes() {
  return kRows;
}

}  // namespace rankscope::logs
