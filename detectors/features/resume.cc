// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether a run was meant to go on from a checkpoint, and whether it did.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <tuple>

#include "detectors/features/checkpoint_place.h"
#include "detectors/features/landmarks.h"
#include "detectors/model/resume_option.h"
#include "detectors/model/subs.h"
#include "detectors/windows/series/statistics.h"
#include "detectors/windows/training_launcher.h"

namespace rankscope::features {
namespace {

using logs::MarkerKind;
using windows::EarlierAttempt;
using windows::MarkerSeen;

constexpr double kSigmaOfMad = 1.4826;  // of a normal distribution

template <class List>
bool Among(const List& list, std::string_view text) {
  return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

// Text that says that a training goes on, not only that weights are read.
bool IsResumeMarker(const MarkerSeen& seen) {
  constexpr std::string_view kNames[] = {"resumed",          "resuming",       "resuming_training",
                                         "hf_resume",        "hf_resumed",     "accelerate_load",
                                         "mmengine_resumed", "lightning_load", "lightning_loaded"};
  return seen.count > 0 && Among(kNames, seen.name);
}

// Megatron-LM says the iteration that it goes on with: 0 where it reads the weights alone.
bool SaysIteration(const MarkerSeen& seen) {
  return seen.count > 0 && seen.name == "megatron_loaded" && seen.number > 0;
}

// What is read after the first record is another start of the script, or the best model at the end.
bool PrecedesTraining(const MarkerSeen& seen, const windows::CitedPoint& first) {
  if (!first.present()) return true;
  return seen.stream == first.stream ? seen.offset < first.offset : seen.last <= first.t;
}

// "=> loaded checkpoint 'a.pth' (epoch 40)"; NaN where no epoch is said.
double EpochOf(const MarkerSeen& seen) {
  constexpr std::string_view kEpoch = "(epoch ";
  const size_t at = seen.line.find(kEpoch);
  if (seen.count == 0 || at == std::string::npos) return logs::kAbsent;
  const char* const begin = seen.line.c_str() + at + kEpoch.size();
  char* end = nullptr;
  const double epoch = std::strtod(begin, &end);
  return end != begin && *end == ')' ? epoch : logs::kAbsent;
}

// The rates of a warm-up that begins anew at a step that is past the beginning: a first warm-up
// climbs through (0, 0), so at step s its rate is s times its slope.
bool WarmsUpAgain(const windows::AttemptWindow& window) {
  constexpr double kPastBeginning = 100;
  const std::vector<double> rates = window.loss.LearningRates();
  const double first_step = window.clock.first_step();
  const double last_step = window.clock.last_step();
  if (rates.size() < 4 || static_cast<int64_t>(rates.size()) < window.progress) return false;
  if (!(first_step >= kPastBeginning) || !(last_step > first_step)) return false;
  const size_t peak =
      static_cast<size_t>(std::max_element(rates.begin(), rates.end()) - rates.begin());
  if (peak < 3 || rates[0] > 0.2 * rates[peak]) return false;
  for (size_t i = 1; i <= peak; ++i) {
    if (rates[i] < rates[i - 1]) return false;
  }
  const double per_record = (last_step - first_step) / static_cast<double>(rates.size() - 1);
  const double slope = (rates[peak] - rates[0]) / (per_record * static_cast<double>(peak));
  return rates[0] < 0.3 * slope * first_step;
}

// What the text shows of the command or of its arguments, before it trains.
bool DescribeFlagOfText(const windows::AttemptWindow& window, Citer& citer,
                        ResumeFeatures& resume) {
  const MarkerSeen& asked = window.marker(MarkerKind::kResumeAsked);
  if (window.marker(MarkerKind::kFreshAsked).count > 0) resume.fresh = true;
  if (asked.count == 0 || asked.text.empty() || resume.fresh) return false;
  Evidence evidence = citer.Quote(EvidenceKind::kResumeFlag, asked);
  evidence.values = {{FieldId::kFlag, asked.text}};
  resume.flag_evidence = citer.Add(std::move(evidence));
  resume.flag_in_text = true;
  return true;
}

// The command's own word, else the submit line's, else what is printed of it.
void DescribeFlag(const windows::JobWindow& job, const windows::AttemptWindow& window, Citer& citer,
                  ResumeFeatures& resume) {
  const windows::SchedulerWord& line = job.parents().submit_line();
  const std::vector<std::string> submitted = SplitSubmitLine(line.value);
  resume.fresh = BeginsAnew(job.argv()) || BeginsAnew(submitted);
  Evidence evidence;
  evidence.kind = EvidenceKind::kResumeFlag;
  evidence.begin = evidence.end = job.begin();
  if (const std::string flag = ResumeFlagOf(job.argv()); !flag.empty()) {
    evidence.store = proto::STORE_PROCESS;
    evidence.process = job.root();
    evidence.values = {{FieldId::kFlag, flag}};
  } else if (const std::string told = ResumeFlagOf(submitted); !told.empty() && !resume.fresh) {
    evidence.store = proto::STORE_SCHEDULER;
    evidence.values = {{FieldId::kFlag, told},
                       {FieldId::kField, line.field},
                       {FieldId::kValue, line.value},
                       {FieldId::kOrigin, line.origin}};
  } else {
    // A training command that is seen, and does not ask, is the last word.
    if (!windows::StartsTraining(job.argv())) DescribeFlagOfText(window, citer, resume);
    return;
  }
  resume.flag_evidence = citer.Add(std::move(evidence));
}

// Says that this run follows that job, and who says so.
EvidenceRef CiteRerun(const windows::JobWindow& job, const ParentFeatures& parent, Citer& citer) {
  Evidence evidence;
  evidence.kind = EvidenceKind::kRerun;
  evidence.begin = evidence.end = job.begin();
  evidence.values = {{FieldId::kKindOf, std::string(parent.kind)},
                     {FieldId::kParent, parent.job_id}};
  if (parent.kind == "restart") {
    evidence.store = proto::STORE_PROCESS;
    evidence.process = job.root();
    evidence.observed = job.attempt().slurm_restart;
    return citer.Add(std::move(evidence));
  }
  const windows::SchedulerWord& word = job.parents().dependency();
  evidence.store = proto::STORE_SCHEDULER;
  evidence.begin = evidence.end = word.t;
  evidence.values.Set(FieldId::kField, word.field)
      .Set(FieldId::kValue, word.value)
      .Set(FieldId::kOrigin, word.origin);
  return citer.Add(std::move(evidence));
}

EvidenceRef CiteParent(const windows::ParentJob& told, const ParentFeatures& parent, Citer& citer) {
  const JobSummary& summary = told.summary;
  Evidence evidence;
  evidence.kind = EvidenceKind::kParentJob;
  evidence.store = proto::STORE_SCHEDULER;
  evidence.begin = evidence.end = told.t;
  if (std::isfinite(summary.last_step)) evidence.observed = summary.last_step;
  if (std::isfinite(summary.total_steps)) evidence.expected = summary.total_steps;
  evidence.values = {{FieldId::kParent, parent.kind == "restart" ? "" : parent.job_id},
                     {FieldId::kNode, summary.node},
                     {FieldId::kProgram, summary.program},
                     {FieldId::kCode, summary.code},
                     {FieldId::kRecords, static_cast<int64_t>(summary.records)},
                     {FieldId::kFinished, summary.finished ? "yes" : ""},
                     {FieldId::kWrote, parent.wrote},
                     {FieldId::kField, "parent_summary"},
                     {FieldId::kValue, told.line},
                     {FieldId::kOrigin, told.origin},
                     {FieldId::kOfJob, told.job_id},
                     {FieldId::kLoss, summary.last_loss}};
  if (!summary.checkpoints.empty()) {
    evidence.values.Set(FieldId::kBytes, summary.checkpoints.front().bytes)
        .Set(FieldId::kSavedStep, summary.checkpoints.front().step);
  }
  return citer.Add(std::move(evidence));
}

// Of several that it waited for, the last one that trained.
const windows::ParentJob* ChooseParent(const windows::JobWindow& job) {
  const windows::ParentJob* chosen = nullptr;
  for (const windows::ParentJob& each : job.parents().all()) {
    const bool itself = each.job_id == job.job_id();
    // What is left of this very run, or of a later one, is no earlier one's.
    if (itself && each.known && each.summary.restarts >= job.attempt().slurm_restart) continue;
    if (itself) return &each;
    const auto rank = [](const windows::ParentJob& of) {
      return std::tuple(of.known, of.summary.records > 0, of.summary.end_wall_seconds);
    };
    if (chosen == nullptr || rank(each) > rank(*chosen)) chosen = &each;
  }
  return chosen;
}

void DescribeParent(const windows::JobWindow& job, const windows::AttemptWindow& window,
                    Citer& citer, ParentFeatures& parent) {
  const windows::ParentJob* told = job.earlier().empty() ? ChooseParent(job) : nullptr;
  if (told == nullptr) return;
  parent.job_id = told->job_id;
  parent.known = told->known;
  if (told->job_id == job.job_id()) {
    parent.kind = "restart";
  } else {
    const std::vector<SlurmDependency> dependencies = job.parents().Dependencies(job.array_task());
    const auto named =
        std::find_if(dependencies.begin(), dependencies.end(),
                     [told](const SlurmDependency& each) { return each.job_id == told->job_id; });
    if (named != dependencies.end()) parent.kind = named->kind;
  }
  // Who waits for a whole array waits for many: which of them the number belongs to is chance.
  const bool one_of_many =
      told->known && !told->summary.array_task.empty() && told->summary.array_task != told->job_id;
  parent.rerun = parent.kind == "restart" || (parent.kind == "afternotok" && !one_of_many);
  parent.rerun_evidence = CiteRerun(job, parent, citer);
  if (!told->known) return;
  const JobSummary& summary = told->summary;
  const std::string program = ProgramOf(job.argv());
  parent.finished = summary.finished;
  parent.saved = !summary.checkpoints.empty();
  parent.same_program = !program.empty() && program == summary.program;
  const double steps = window.clock.total_steps();
  parent.same_length = !(std::abs(steps - summary.total_steps) > 0);
  parent.records = summary.records;
  parent.last_step = summary.last_step;
  parent.first_loss = summary.first_loss;
  parent.last_loss = summary.last_loss;
  if (summary.loss_mad > 0) parent.noise = summary.loss_mad * kSigmaOfMad;
  if (parent.saved) parent.wrote = summary.checkpoints.front().path;
  parent.evidence = CiteParent(*told, parent, citer);
}

// The kernel saw a checkpoint read before the first save: of this training or of another.
bool WeightsRead(const windows::StorageTracker& storage) {
  constexpr int64_t kLook = 1024;  // what kind of file is it?
  return std::any_of(storage.read().begin(), storage.read().end(), [&](const auto& file) {
    const bool before = storage.saves() == 0 || file.end <= storage.first_save();
    return before && file.bytes >= kLook;
  });
}

// What was looked for and is not there: by the kernel's word, else by the program's.
std::string Looked(const windows::AttemptWindow& window) {
  const windows::StorageTracker& storage = window.kernel.storage;
  for (const windows::FileFailure& failure : storage.failures()) {
    if (failure.error != ENOENT || failure.kind != "checkpoint") continue;
    if (storage.saves() > 0 && failure.first > storage.first_save()) continue;
    const bool bare = failure.directory.empty() || failure.directory == "/";
    return (bare ? "" : failure.directory + "/") + failure.name;
  }
  return window.marker(MarkerKind::kNoCheckpoint).text;
}

// Megatron-LM's ends with it: "saving checkpoint at iteration 200 to out"; the path may be told as
// such, too.
std::string_view SavePlace(const MarkerSeen& save) {
  if (!save.text.empty()) return save.text;
  const std::string_view line = save.line;
  constexpr std::string_view kTo = " to ";
  const size_t to = line.rfind(kTo);
  if (to == std::string_view::npos) return {};
  const std::string_view path = line.substr(to + kTo.size());
  return path.substr(0, path.find_first_of(" \t\r\n,;"));
}

bool BeginsWithFirstEpoch(const windows::AttemptWindow& window) {
  constexpr std::string_view kFromOne[] = {"keras", "mmengine", "ultralytics"};
  const double first = window.clock.first_epoch();
  return first < (Among(kFromOne, window.format) ? 2 : 1);  // NaN: not told
}

}  // namespace

bool CountsWithinEpochs(const windows::AttemptWindow& window) {
  constexpr std::string_view kFormats[] = {"lightning", "lightning_rich",  "keras",      "timm",
                                           "mmengine",  "pytorch_example", "ultralytics"};
  return window.clock.restarts() > 0 || Among(kFormats, window.format) ||
         Among(kFormats, window.framework);
}

void DescribeResume(const windows::JobWindow& job, const windows::AttemptWindow& window,
                    Citer& citer, JobFeatures& f) {
  ResumeFeatures& resume = f.resume;
  const MarkerSeen& begun = window.marker(MarkerKind::kLoadBegin);
  const MarkerSeen& loaded = window.marker(MarkerKind::kLoaded);
  const MarkerSeen& missing = window.marker(MarkerKind::kNoCheckpoint);
  resume.load_seen = begun.count > 0 || loaded.count > 0;
  const MarkerSeen& said = loaded.count > 0 ? loaded : begun;
  if (resume.load_seen) resume.load_evidence = citer.AddMarker(EvidenceKind::kCheckpointRead, said);
  if (PrecedesTraining(said, window.first_progress)) {
    resume.announced = IsResumeMarker(begun) || IsResumeMarker(loaded) || SaysIteration(loaded);
    resume.loaded_epoch = EpochOf(loaded);
  }
  for (const MarkerSeen* marker : {&loaded, &begun}) {
    if (std::isnan(resume.loaded_step) && marker->count > 0) resume.loaded_step = marker->number;
  }
  resume.first_step = window.clock.first_step();
  resume.counts_within_epochs = CountsWithinEpochs(window);
  resume.first_epoch = window.clock.first_epoch();
  if (window.progress >= 2 && std::isfinite(window.clock.epoch())) {
    resume.epoch_interval =
        (window.clock.epoch() - resume.first_epoch) / static_cast<double>(window.progress - 1);
  }
  if (window.progress >= 2 && std::isfinite(window.clock.last_step())) {
    resume.interval =
        (window.clock.last_step() - resume.first_step) / static_cast<double>(window.progress - 1);
  }
  if (resume.counts_within_epochs && BeginsWithFirstEpoch(window)) {
    // What counts within the first epoch counts from the beginning of the training, and where only
    // whole epochs are printed the first record is at the end of it.
    resume.counts_within_epochs = false;
    if (!window.format.starts_with("lightning"))
      resume.interval = std::max(resume.interval, resume.first_step);
  }

  const MarkerSeen& part = window.marker(MarkerKind::kPartialLoad);
  if (part.count > 0) {
    resume.partial = part.text;
    resume.partial_evidence = citer.AddMarker(EvidenceKind::kPartialLoad, part);
  } else if (WarmsUpAgain(window)) {
    resume.partial = "schedule";
    resume.partial_evidence = citer.AddPoint(EvidenceKind::kWarmUpAgain, window.first_progress);
  }

  const bool current = &window == &job.now();
  if (current) {
    DescribeFlag(job, window, citer, resume);
    DescribeParent(job, window, citer, resume.parent);
  }
  resume.weights_read = WeightsRead(window.kernel.storage);
  resume.looked = Looked(window);
  resume.restarts = job.attempt().slurm_restart + job.attempt().elastic_restart;
  resume.restarted = resume.restarts > 0 || window.marker(MarkerKind::kRestart).count > 0;
  for (const windows::Candidate& candidate : job.incidents().all()) {
    const logs::Incident& incident = candidate.incident;
    const bool returned = incident.kind == logs::IncidentKind::kSchedulerEnd &&
                          (incident.sub == subs::kRequeue || incident.sub == subs::kPreemption);
    if (returned && candidate.attempt < job.attempt().ordinal) resume.restarted = true;
  }

  if (missing.count > 0) {
    // Where it looked, and whether it saves in the same place: then this is how a first start looks
    // that would have resumed, had there been anything.
    std::string_view place = missing.text;
    for (const std::string_view file : {"/latest_checkpointed_iteration.txt", "/latest"}) {
      if (place.ends_with(file)) place.remove_suffix(file.size());
    }
    const MarkerSeen& save = window.marker(MarkerKind::kSaveBegin).count > 0
                                 ? window.marker(MarkerKind::kSaveBegin)
                                 : window.marker(MarkerKind::kSaveEnd);
    resume.looked_elsewhere = !place.empty() && save.count > 0 &&
                              save.line.find(place) == std::string::npos &&
                              !MayBeOneFolder(place, SavePlace(save));
  }

  if (!current || job.earlier().empty()) return;
  const EarlierAttempt& earlier = job.earlier().back();
  // One that was begun and not completed is nothing to go on from.
  if (earlier.finished || earlier.saved.count == 0 || !earlier.completed.present) return;
  resume.earlier = true;
  resume.earlier_first_step = earlier.first_step;
  resume.earlier_last_step = earlier.highest_step;
  resume.earlier_last_epoch = earlier.last_epoch;
  resume.earlier_first_loss = earlier.first_loss.value;
  resume.earlier_last_loss = earlier.last_loss.value;
  resume.earlier_noise = earlier.loss_noise;
  resume.earlier_save_evidence = citer.AddMarker(EvidenceKind::kEarlierSave, earlier.saved);
  resume.earlier_loss_evidence = citer.AddPoint(EvidenceKind::kEarlierLoss, earlier.last_loss);
}

}  // namespace rankscope::features
