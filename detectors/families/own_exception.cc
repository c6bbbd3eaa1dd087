// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A1 and X1: the program's own exception, before the first training step (A1) or after it (X1). A
// training step that was seen in a recognised dialect makes it X1. Where no dialect was recognised,
// the run may have trained unseen: then A1 needs an import, configuration or loading frame, and
// everything else is X1 at the lowest tier with A1 named as the alternative.
#include "detectors/families/own_exception.h"

#include <algorithm>

#include "detectors/families/curve.h"
#include "detectors/families/sender.h"
#include "detectors/features/earlier_text.h"
#include "detectors/features/gpu_error.h"
#include "detectors/logs/failures/exception_table.h"

namespace rankscope::families {

using features::Cause;
using features::JobFeatures;
using logs::FrameKind;
using logs::Incident;
using logs::IncidentKind;

namespace {

constexpr std::string_view kOtherDirectory = "slurm_chdir";

// Slurm started the program in another directory than the job asks for, and the file that is
// missing was looked for there.
void BlameDirectory(const JobFeatures& f, Finding& finding) {
  const auto said = std::find_if(f.causes.begin(), f.causes.end(), [](const Cause& cause) {
    return cause.incident().shape == kOtherDirectory;
  });
  const Cause* const primary = f.Primary();
  if (said == f.causes.end() || primary == nullptr) return;
  const std::string_view directory = FieldOf(*said, "directory");
  const std::string_view message = primary->incident().message;
  if (message.find("No such file or directory") == std::string_view::npos) return;
  const size_t quote = message.find(" '");  // not that of "can't"
  const std::string_view path =
      quote == std::string_view::npos ? std::string_view() : message.substr(quote + 2);
  const bool there = path.starts_with(directory) && path.substr(directory.size()).starts_with('/');
  if (directory.empty() || path.empty() || (path.starts_with('/') && !there)) return;
  finding.advice = "directory_absent";
  Show(said->evidence, finding);
  finding.values.Set(FieldId::kDirectory, std::string(directory))
      .Set(FieldId::kReason, said->incident().message);
}

// A GPU that cannot be used at all is a matter of the environment.
bool IsGpuEnvironment(const Incident& incident) {
  return features::OwnerOfGpuError(incident) == features::GpuErrorOwner::kEnvironment;
}

// A driver that is too old, or a build for other GPUs, shows at the first call that needs it.
bool FailsAtFirstKernel(const Incident& incident) {
  if (incident.kind != IncidentKind::kCudaError) return false;
  return std::any_of(incident.fields.begin(), incident.fields.end(), [](const KeyValue& field) {
    return field.key == "error" &&
           (field.value == "no_kernel_image" || field.value == "driver_too_old");
  });
}

bool BeforeTraining(FrameKind frame) {
  switch (frame) {
    case FrameKind::kImport:
    case FrameKind::kConfig:
    case FrameKind::kDataset:
    case FrameKind::kAssetLoad:
    case FrameKind::kCheckpointLoad:
    case FrameKind::kRendezvous:
      return true;
    case FrameKind::kUnknown:
    case FrameKind::kCheckpointSave:
    case FrameKind::kDataLoader:
    case FrameKind::kCollective:
    case FrameKind::kTrainStep:
    case FrameKind::kTeardown:
      return false;
  }
  return false;
}

// A library's training loop is on the stack and printed no step: rarely, because it prints every
// few hundred only.
bool InKnownTrainer(const Incident& incident) {
  return std::any_of(incident.fields.begin(), incident.fields.end(),
                     [](const KeyValue& field) { return field.key == "trainer"; });
}

// Another rank prints, on another node: this one has trained by its calls, for so many looks, a
// second apart. What a start does in collectives (the first broadcast of the weights, a
// checkpoint's parts) has frames of its own.
bool TrainedByItsCalls(const JobFeatures& f, FrameKind frame, int32_t advances) {
  constexpr double kCompleted = 100;
  if (frame != FrameKind::kDataset && BeforeTraining(frame)) return false;
  return f.progress == 0 && f.collectives.completed >= kCompleted &&
         f.collectives.advances >= advances && f.launches.launches > 0;
}

// The same where a step takes seconds and few collectives: weights are made, moved and broadcast by
// some thousand kernels, within half a minute.
bool TrainedSlowly(const JobFeatures& f, FrameKind frame) {
  constexpr double kCompleted = 20, kKernels = 10'000, kSeconds = 40;
  constexpr int32_t kAdvances = 10;
  if (frame != FrameKind::kDataset && BeforeTraining(frame)) return false;
  return f.progress == 0 && f.collectives.completed >= kCompleted &&
         f.collectives.advances >= kAdvances && f.launches.launches >= kKernels &&
         f.collectives.advances * f.collectives.usual_pause >= kSeconds;
}

}  // namespace

bool TrainedInItsOwnWords(const JobFeatures& f) {
  constexpr int64_t kChanges = 4;
  return f.progress == 0 && f.metric.changes >= kChanges;
}

bool TrainedInNobodysWords(const JobFeatures& f, const Cause& cause) {
  constexpr int64_t kMany = 20;
  return f.generic && cause.candidate->progress_before >= kMany;
}

bool IsMine(const Cause& cause) {
  if (cause.incident().shape == kOtherDirectory) return false;  // by itself, it ends nothing
  return cause.incident().kind == IncidentKind::kException ||
         cause.incident().kind == IncidentKind::kUsageError ||
         logs::RefusesHostMemory(cause.incident()) || IsGpuEnvironment(cause.incident());
}

When Place(const JobFeatures& f, const Cause& cause) {
  const Incident& incident = cause.incident();
  // A program reads its arguments, and imports what it needs at its top, before it trains: what
  // trained before was another command.
  if (incident.kind == IncidentKind::kUsageError || features::FailsAtTheTop(incident))
    return When::kStart;
  // Records that arrived before the exception, or any at all where a buffer may have held them
  // back.
  if (f.recognised && (cause.candidate->progress_before > 0 || f.progress > 0))
    return When::kTraining;
  // In less than a minute they may still be those of a start.
  constexpr int32_t kSurely = 60, kPerhaps = 10;
  if (TrainedByItsCalls(f, incident.frame, kSurely) || TrainedSlowly(f, incident.frame))
    return When::kTraining;
  if (TrainedByItsCalls(f, incident.frame, kPerhaps)) return When::kProbablyStart;
  if (TrainedInItsOwnWords(f)) return When::kUnknown;
  if (TrainedInNobodysWords(f, cause)) return When::kUnknown;
  if (BeforeTraining(incident.frame)) return When::kStart;
  if (f.generic) return When::kUnknown;
  // A framework that announces its training loop, and had not.
  if (!f.framework.empty() && !f.train_begin) return When::kStart;
  if (!f.framework.empty()) return When::kProbablyStart;
  // What is saved has been made first, by a loop that prints in a way that nobody here reads.
  if (incident.frame == FrameKind::kCheckpointSave) return When::kUnknown;
  // Where the words alone decide, the first call of the model is still the start.
  if (logs::FailsAtFirstUse(incident) || FailsAtFirstKernel(incident)) return When::kProbablyStart;
  if (f.progress == 0 && InKnownTrainer(incident)) return When::kPerhapsStart;
  if (incident.frame != FrameKind::kTrainStep) return When::kProbablyStart;
  return When::kUnknown;
}

Finding Describe(const JobFeatures& f, const Cause& primary) {
  Finding finding = FromPrimary(f);
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.component = "program";
  finding.sub = logs::ExceptionSub(primary.incident());
  // In the middle of training only what is told counts: the settings had served until then.
  finding.fault_class = f.progress > 0 ? logs::ToldFaultClass(primary.incident())
                                       : logs::FaultClass(primary.incident());
  if (IsGpuEnvironment(primary.incident())) finding.fault_class = "env";
  // The node's fabric manager has not brought the NVSwitches up: no program can do anything there.
  if (std::any_of(primary.incident().fields.begin(), primary.incident().fields.end(),
                  [](const KeyValue& field) {
                    return field.key == "error" && field.value == "fabric_not_ready";
                  }))
    finding.domain = proto::DOMAIN_INFRASTRUCTURE;
  const bool asset = finding.fault_class == "asset";
  if (asset && logs::IsTransient(primary.incident())) {
    finding.retry = proto::RETRY_MAY_RECOVER;
    finding.domain = proto::DOMAIN_INFRASTRUCTURE;
    finding.values.Set(FieldId::kTransient, "yes");
  }
  BlameDirectory(f, finding);
  finding.open.push_back(Question::kFixSemantics);
  return finding;
}

}  // namespace rankscope::families
