// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The wiring: sources -> doors -> recordings -> engine -> verdicts on disk, metrics and HTTP. Owns
// everything that the loop thread writes. Construct, Start, run the loop, Stop; all on the loop
// thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/engine/engine.h"
#include "detectors/model/result.h"
#include "detectors/status/job_statuses.h"
#include "exporter/config/config.h"
#include "exporter/daemon/job_recordings.h"
#include "exporter/daemon/job_summaries.h"
#include "exporter/daemon/left_runs.h"
#include "exporter/daemon/memory_budget.h"
#include "exporter/daemon/node_clock.h"
#include "exporter/daemon/notifier.h"
#include "exporter/daemon/published_jobs.h"
#include "exporter/daemon/source_keeper.h"
#include "exporter/daemon/verdict_store.h"
#include "exporter/daemon/waiting_room.h"
#include "exporter/http/listener.h"
#include "exporter/http/state.h"
#include "exporter/loop/disk_thread.h"
#include "exporter/loop/event_loop.h"
#include "exporter/loop/logger.h"
#include "exporter/loop/user_directory.h"
#include "exporter/loop/user_workers.h"
#include "exporter/metrics/snapshot.h"
#include "exporter/slurm/questions.h"

namespace rankscope::collectors {
class HeardFiles;
class ProcessTable;
}  // namespace rankscope::collectors
namespace rankscope::probes {
class TrackedMap;
}
namespace rankscope::run {
struct JobOwner;
class RunListener;
}  // namespace rankscope::run

namespace rankscope::exporter {

class Agent {
 public:
  // Reads the configuration as it is now. On another thread than the loop's.
  using LoadConfig = std::function<ConfigOutcome()>;

  Agent(Config config, EventLoop& loop, Logger& log, LoadConfig load = {});
  ~Agent();

  // An error is one that nothing can be done without: a listen address that cannot be taken.
  Status Start();
  // Ends everything, within less than a second. False: something hangs and was left behind, and the
  // process can only end without waiting for it.
  bool Stop();

  // Reads the configuration again and takes over what can change; `done` may be empty. A mistake
  // changes nothing.
  void Reload(std::function<void(const Status&)> done);

  // In the order of web.listen.
  std::vector<uint16_t> ports() const { return listener_->ports(); }

 private:
  void StartNotifier(NotifyConfig config);
  // What a reload has read of notify.file.
  void TakeNotify(bool file_before, NotifyConfig config);
  void Restore();
  // Who may come in, and what the log says of that.
  void SetAccess(http::ListenerOptions& options);
  void NoteAway(Timestamp since);
  void StartSources();
  void GiveUpWrappers();
  void ReadFolder(LeftRun run, bool last);
  void TakeRest(const LeftRun& run, LeftRest& rest, bool last);
  void LoseWrapper(const std::string& job_id);
  std::optional<run::JobOwner> OwnerOf(const std::string& job_id) const;
  void NoteOwner(const ProcessStart& start);
  void NoteAsked(const ProcessStart& start);
  void Pass(const Observation& observation);
  void Record(const Observation& observation);
  void OnTick();
  // An abnormal end is judged without waiting for the next tick.
  void JudgeSoon();
  // Ticks the engine now; recorded, so that a replay judges at the same instants.
  void Judge();
  void Handle(const engine::Output& output);
  // As many jobs as memory allows.
  void CheckMemory();
  void NoteSeries(const metrics::Snapshot& snapshot);
  // What is left of a job whose verdict is final.
  void KeepSummary(const std::string& job_id);
  void Keep(const JobSummary& summary);
  // Looks for what is left of the job that another may go on from, and says what was found.
  void FindParent(const engine::Request& request);
  void TellParent(const engine::Request& request, std::string_view found, std::string_view origin);
  void GiveUpParents(Timestamp now);
  void Answer(const JobStatus& job);
  void Publish(Timestamp now, double tick_seconds);
  void CheckTrouble();
  // Says in the verdict what of its job is not on the disk.
  std::shared_ptr<JobStatus> NoteRecording(const JobStatus& job) const;
  bool StopListener();
  std::optional<std::string> Explain(int32_t pid, Duration deadline);
  // What `ask` says on the loop thread; for HTTP threads.
  std::optional<std::string> OnLoop(std::function<std::string()> ask, Duration deadline);
  Status ReloadFrom(Duration deadline);  // an HTTP thread
  Status Apply(const ConfigOutcome& read, NotifyOutcome notify);
  static engine::Config EngineConfig(const Config& config);
  Observation OfAgent(decltype(Observation::kind) kind);

  Config config_;
  const LoadConfig load_;
  metrics::ReloadStatus config_read_;
  EventLoop& loop_;
  Logger& log_;
  std::string node_;
  std::string boot_id_;
  int64_t wall_offset_ns_ = 0;
  NodeClock node_clock_;
  double start_wall_seconds_ = 0;
  engine::Engine engine_;
  std::shared_ptr<UserDirectory> users_ = std::make_shared<UserDirectory>();
  status::JobStatuses statuses_;  // of its jobs
  MemoryBudget memory_;
  size_t jobs_measured_ = 0;  // when memory was last looked at
  bool memory_short_ = false;
  bool series_noted_ = false;  // that the page has no room for some
  DiskThread recording_disk_;  // frames of recordings, and nothing that is slow
  DiskThread documents_disk_;  // verdicts and what else is synced and may wait
  VerdictStore verdicts_;
  std::unique_ptr<Notifier> notifier_;  // null: nobody is told
  PublishedJobs published_jobs_;
  JobSummaries summaries_;
  std::vector<engine::Request> parents_asked_;  // of Slurm's source, and not answered yet
  JobRecordings recordings_;
  std::shared_ptr<collectors::ProcessTable> processes_;
  std::shared_ptr<slurm::Questions> slurm_questions_ = std::make_shared<slurm::Questions>();
  std::shared_ptr<probes::TrackedMap> tracked_;
  std::shared_ptr<collectors::HeardFiles> files_heard_;  // by earlier daemons and now
  WaitingRoom waiting_room_;
  SourceKeeper sources_;
  run::RunListener* wrappers_ = nullptr;  // owned by sources_
  // Of sources that hold back what the judgement shall know.
  std::vector<std::function<void()>> before_judging_;
  metrics::SnapshotBuilder snapshots_;
  http::StateHolder state_;
  std::unique_ptr<http::Listener> listener_;
  std::map<std::string, LeftRun> awaited_;   // restored jobs whose wrapper is not back
  uint32_t streams_heard_ = 0;               // by an earlier daemon: the highest number
  UserWorkers folders_{loop_};               // their folders are their users'
  std::map<std::string, uint32_t> holders_;  // whose wrappers have spoken for restored jobs
  EventLoop::TimerId tick_timer_ = 0;
  EventLoop::TimerId judge_timer_ = 0;  // of JudgeSoon; 0 = none runs
  Timestamp hurried_;                   // when an error of a GPU was last judged before its tick
  int64_t ticks_ = 0;
  int64_t seq_ = 0;
  std::string trouble_;           // as last logged
  std::string document_trouble_;  // as last logged
  bool ready_ = false;
};

}  // namespace rankscope::exporter
