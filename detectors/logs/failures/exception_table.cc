// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/failures/exception_table.h"

#include <algorithm>

#include "detectors/logs/failures/exception_rows.h"
#include "detectors/logs/failures/incident_text.h"
#include "detectors/model/subs.h"

namespace rankscope::logs {
namespace {

// What the exception itself says: the first line of its message and those that were kept of the
// rest.
bool Says(const Incident& incident, const ClassRow& row) {
  if (Fits(row, incident.exception_type, incident.message)) return true;
  return !row.words.empty() &&
         std::any_of(incident.quotes.begin(), incident.quotes.end(), [&](const Quote& quote) {
           return quote.role == QuoteRole::kMessage &&
                  Fits(row, incident.exception_type, quote.line);
         });
}

std::string_view Lookup(std::span<const ClassRow> rows, const Incident& incident) {
  for (const ClassRow& row : rows) {
    if (Says(incident, row)) return row.value;
  }
  return {};
}

std::string_view Lookup(std::span<const ClassRow> rows, std::string_view type,
                        std::string_view message) {
  for (const ClassRow& row : rows) {
    if (Fits(row, type, message)) return row.value;
  }
  return {};
}

// A tokenizer is read while a data set is prepared, and is part of the model all the same.
bool NamesModelFile(std::string_view message) {
  return ContainsAny(message, {"tokenizer", "vocab.", "merges.txt", ".safetensors", "pytorch_model",
                               "adapter_config", ".ckpt", ".pth", ".pt'"});
}

bool NamesSettings(std::string_view message) {
  return ContainsAny(message, {".yaml", ".yml", ".toml", ".ini'", ".cfg", "ds_config"});
}

bool NamesData(std::string_view message) {
  return ContainsAny(message, {".jsonl", ".csv", ".tsv", ".parquet", ".arrow", ".idx'", ".lmdb",
                               ".tfrecord", "_text_document", ".wav", ".flac", ".jpg", ".jpeg"});
}

// "Input type (X) and weight type (Y) should be the same" is about devices where one of the two is
// on CUDA, and about precision where both are.
bool MixesDevices(std::string_view message) {
  const std::string_view types = After(message, "Input type (");
  const std::string_view second = After(types, " type (");
  if (second.empty()) return false;
  return types.starts_with("torch.cuda.") != second.starts_with("torch.cuda.") &&
         types.starts_with("torch.") && second.starts_with("torch.");
}

// Where a model and its input are, and of which type they are, is the same in every step: the first
// one tells. An evaluation, and what is written or read between the steps, comes later.
bool MixesPlacesOrTypes(const Incident& incident) {
  if (incident.frame != FrameKind::kTrainStep && incident.frame != FrameKind::kUnknown)
    return false;
  static constexpr std::string_view kLater[] = {"eval",   "valid", "test",   "infer",
                                                "sample", "save",  "predict"};
  if (ContainsAny(incident.function, kLater)) return false;
  static constexpr std::string_view kTypes[] = {"expected scalar type ", "must have the same dtype",
                                                "\" not implemented for '"};
  return Lookup(SubRows(), incident) == "device_mismatch" || MixesDevices(incident.message) ||
         ContainsAny(incident.message, kTypes);
}

// A path that is not there: whose it was says the path, else the place.
std::string_view FaultOfMissingFile(const Incident& incident, bool in_data) {
  const std::string_view message = incident.message;
  if (NamesModelFile(message)) return "asset";
  if (NamesSettings(message)) return "config";
  if (NamesData(message) && incident.frame != FrameKind::kAssetLoad) return "data";
  return in_data ? "data" : "asset";
}

// A process of its own that was to hand it a tensor has ended (torch.multiprocessing).
bool LostItsWorker(const Incident& incident) {
  return std::any_of(incident.fields.begin(), incident.fields.end(),
                     [](const KeyValue& field) { return field.key == "worker_gone"; });
}

}  // namespace

std::string_view ToldFaultClass(const Incident& incident) {
  if (LostItsWorker(incident)) return "env";
  if (incident.kind == IncidentKind::kHostOom)
    return "config";  // a plan that the host does not fit
  if (incident.sub == subs::kNoContainer)
    return incident.frame == FrameKind::kAssetLoad ? "asset" : "env";
  if (const auto value = Lookup(FaultByWords(), incident); !value.empty()) return value;
  if (incident.kind == IncidentKind::kUsageError) return "config";
  const std::string_view type = LastComponent(incident.exception_type);
  // The type of a file error or a lookup says what was missing, the frame whose it was.
  const bool in_data =
      incident.frame == FrameKind::kDataset || incident.frame == FrameKind::kDataLoader;
  const bool missing = type == "FileNotFoundError" || type == "OSError" || type == "IOError";
  if (missing) return FaultOfMissingFile(incident, in_data);
  // Files that cannot be decoded: what they were for says whose they are.
  const bool undecodable = type == "JSONDecodeError" || type == "UnicodeDecodeError" ||
                           type == "EOFError" || type == "UnpicklingError";
  if (undecodable && incident.frame == FrameKind::kConfig) return "config";
  if (undecodable && incident.frame == FrameKind::kAssetLoad) return "asset";
  if (const auto value = Lookup(FaultByType(), incident.exception_type, {}); !value.empty())
    return value;
  if (incident.frame == FrameKind::kImport) return "env";
  if (in_data) return "data";
  if (incident.kind == IncidentKind::kCudaError) return "env";
  if (incident.frame == FrameKind::kAssetLoad && type != "ValueError" && type != "TypeError")
    return "asset";
  // A vague last exception of a chain: its cause may be plain.
  if (!incident.cause_type.empty()) {
    for (const std::span<const ClassRow> rows : {FaultByWords(), FaultByType()}) {
      const auto value = Lookup(rows, incident.cause_type, incident.cause_message);
      if (!value.empty()) return value;
    }
  }
  // A lookup that failed away from any configuration is about what was read.
  const bool lookup = type == "IndexError" || type == "KeyError";
  if (lookup && incident.frame == FrameKind::kUnknown) return "data";
  return incident.frame == FrameKind::kConfig ? "config" : "";
}

std::string_view FaultClass(const Incident& incident) {
  const std::string_view told = ToldFaultClass(incident);
  return told.empty() ? "config" : told;
}

bool FailsAtFirstUse(const Incident& incident) {
  if (incident.kind != IncidentKind::kException && incident.kind != IncidentKind::kUsageError)
    return false;
  // Threads and descriptors run out with time.
  if (ContainsAny(incident.message, {"Too many open files", "can't start new thread"}))
    return false;
  std::string_view told = Lookup(FaultByWords(), incident);
  if (told.empty()) told = Lookup(FaultByType(), incident.exception_type, {});
  return told == "env" || MixesPlacesOrTypes(incident);
}

bool RefusesHostMemory(const Incident& incident) {
  // Ray's exception of that name reports a kill; std::bad_alloc ends in SIGABRT.
  return incident.kind == IncidentKind::kHostOom && !incident.exception_type.empty() &&
         incident.signal == 0 && !incident.exception_type.starts_with("ray.");
}

bool IsTransient(const Incident& incident) {
  const auto says = [](std::string_view text) { return ContainsAny(text, TransientWords()); };
  return says(incident.message) || says(incident.cause_message) ||
         std::any_of(incident.quotes.begin(), incident.quotes.end(), [&](const Quote& quote) {
           return quote.role != QuoteRole::kFrame && says(quote.line);
         });
}

std::string_view ExceptionSub(const Incident& incident) {
  if (LostItsWorker(incident)) return "other";
  if (incident.kind == IncidentKind::kHostOom) return "host_memory";
  if (incident.kind == IncidentKind::kCudaError || incident.kind == IncidentKind::kCudaOom) {
    return "cuda_runtime";
  }
  if (incident.sub == subs::kNoContainer) {
    if (ContainsAny(incident.message, {"nvidia-container-cli", "[[gpu]]"})) return "cuda_runtime";
    return incident.frame == FrameKind::kAssetLoad ? "asset_unavailable" : "container";
  }
  if (const auto value = Lookup(SubRows(), incident); !value.empty()) return value;
  if (MixesDevices(incident.message)) return "device_mismatch";
  const std::string_view type = LastComponent(incident.exception_type);
  const std::string_view fault = FaultClass(incident);
  // What is installed does not fit; a name that a module lacks may as well be a slip of the pen.
  if (fault == "env" && type != "AttributeError") return "missing_module";
  if (incident.kind == IncidentKind::kUsageError) return "bad_config";
  if (fault == "asset") return "asset_unavailable";
  if (fault == "data") return "bad_data";
  const bool told =
      Lookup(FaultByWords(), incident) == "config" ||
      (type != "NotImplementedError" && type != "SyntaxError" && type != "IndentationError" &&
       type != "TabError" && type != "NameError" && type != "UnboundLocalError" &&
       Lookup(FaultByType(), incident.exception_type, {}) == "config");
  const bool setting =
      type == "ValueError" || type == "TypeError" || incident.frame == FrameKind::kConfig;
  return told || (setting && incident.frame != FrameKind::kTrainStep) ? "bad_config" : "other";
}

}  // namespace rankscope::logs
