// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/nccl/nccl_ras.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "detectors/model/event_types.h"
#include "detectors/reports/ras_numbers.h"
#include "exporter/nccl/ras_client.h"

namespace rankscope::collectors {
namespace {

// Jobs of one node that are asked in one round; one that does not answer takes kRasDeadline.
constexpr size_t kMaxJobs = 8;
constexpr Duration kRoundDeadline = Seconds(10 + 15 * static_cast<int64_t>(kMaxJobs));
constexpr int64_t kOtherNodes = 5;  // asked at every fifth interval without rank 0
// JSON beyond this is of a job too large to tell it: its text names only who stands out.
constexpr size_t kMostJson = NcclRasDiary::kMaxTold;
constexpr int kSilencesTold = 3;  // in a row

// Of every answer, and not only of those worth a report. NaN, which is shown nowhere, once RAS does
// not answer any more.
std::vector<Sample> NumberSamples(const std::optional<reports::RasNumbers>& numbers) {
  using State = reports::RasState;
  constexpr std::array<std::pair<SignalId, State>, reports::kRasStates> kStates = {{
      {SignalId::kRasRunning, State::kRunning},
      {SignalId::kRasFinalising, State::kFinalising},
      {SignalId::kRasInitialising, State::kInitialising},
      {SignalId::kRasMissing, State::kMissing},
      {SignalId::kRasAborted, State::kAborted},
      {SignalId::kRasUnresponsive, State::kUnresponsive},
      {SignalId::kRasDead, State::kDead},
  }};
  std::vector<Sample> samples;
  const auto add = [&](SignalId signal, int64_t value) {
    samples.push_back(
        {signal, numbers ? static_cast<double>(value) : std::numeric_limits<double>::quiet_NaN()});
  };
  const reports::RasNumbers of = numbers.value_or(reports::RasNumbers());
  for (const auto& [signal, state] : kStates) add(signal, of.of(state));
  add(SignalId::kRasErrors, of.errors);
  add(SignalId::kRasLag, of.lag);
  return samples;
}

}  // namespace

struct NcclRas::Round {
  struct Answer {
    ProcessKey owner;
    std::string address;
    RasAnswer answer;
    std::vector<NcclRasDiary::Entry> told;
    int silences = 0;             // in a row
    std::vector<Sample> numbers;  // on the node of rank 0: every node is told of all ranks
  };
  Timestamp t;
  std::vector<Answer> answers;
  int64_t lost = 0;
};

// What the worker keeps from round to round.
struct NcclRas::Poll {
  struct Job {
    NcclRasDiary diary;
    int64_t rounds = 0;
    bool json = true;
    int silences = 0;
  };
  explicit Poll(std::string proc_root) : roster(std::move(proc_root)) {}

  Round Run(const std::vector<TrackedProcess>& tracked, Timestamp t) {
    Round round;
    round.t = t;
    roster.Update(tracked);
    std::map<std::string, std::vector<const RankProcess*>> groups;
    for (const auto& [pid, rank] : roster.ranks()) groups[rank.group].push_back(&rank);
    std::erase_if(jobs, [&](const auto& entry) { return !groups.contains(entry.first); });
    for (const auto& [group, ranks] : groups) {
      if (round.answers.size() >= kMaxJobs) break;
      Job& job = jobs[group];
      const bool leads = std::any_of(ranks.begin(), ranks.end(),
                                     [](const RankProcess* rank) { return rank->rank == 0; });
      if (job.rounds++ % (leads ? 1 : kOtherNodes) != 0) continue;
      if (const auto listener = FindRasListener(roster, ranks))
        Question(*listener, leads, job, round);
    }
    for (const auto& [group, job] : jobs) round.lost += job.diary.untold();
    return round;
  }

  void Question(const RasListener& listener, bool leads, Job& job, Round& round) {
    RasQuestion question;
    question.socket = listener.socket;
    question.json = job.json;
    if (listener.network_of != 0) {
      const std::string path =
          roster.proc_root() + '/' + std::to_string(listener.network_of) + "/ns/net";
      question.network_fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
      if (question.network_fd < 0) return;  // it has ended
    }
    Round::Answer& answer = round.answers.emplace_back();
    answer.owner = listener.owner;
    answer.address = "port " + std::to_string(listener.socket.port);
    answer.answer = AskRas(question);
    if (question.network_fd >= 0) close(question.network_fd);
    const RasAnswer& said = answer.answer;
    job.silences = said.silent ? job.silences + 1 : 0;
    answer.silences = job.silences;
    if (leads && job.silences == 1) answer.numbers = NumberSamples(std::nullopt);
    if (said.text.empty()) return;
    if (leads) {
      const reports::RasReport report = reports::ReadRas(said.text);
      if (!report.cut || !report.groups.empty() || !report.communicators.empty())
        answer.numbers = NumberSamples(reports::NumbersOf(report));
    }
    if (said.json && said.text.size() > kMostJson) {
      job.json = false;  // from the next question on
      return;
    }
    answer.told = job.diary.Add(round.t, said.text);
  }

  RankRoster roster;
  std::map<std::string, Job> jobs;
};

NcclRas::NcclRas(std::shared_ptr<ProcessTable> table, Duration interval, std::string proc_root)
    : table_(std::move(table)), interval_(interval), proc_root_(std::move(proc_root)) {}

NcclRas::~NcclRas() {
  Stop();
}

Status NcclRas::Start(exporter::EventLoop& loop, Sink& sink) {
  loop_ = &loop;
  sink_ = &sink;
  poll_ = std::make_shared<Poll>(proc_root_);
  worker_ = std::make_unique<exporter::Worker>(loop);
  timer_ = loop.Every(interval_, [this] { Ask(); });
  return {};
}

void NcclRas::Stop() {
  if (loop_ == nullptr) return;
  loop_->Cancel(timer_);
  worker_.reset();
  loop_ = nullptr;
}

void NcclRas::Ask() {
  if (worker_->pending() > 0) return;  // the last round is still under way
  std::vector<TrackedProcess> tracked;
  tracked.reserve(table_->processes().size());
  for (const auto& [pid, process] : table_->processes()) tracked.push_back(process);
  const bool submitted = worker_->Submit(
      [this, poll = poll_, tracked = std::move(tracked),
       t = loop_->Now()]() -> std::function<void()> {
        return [this, round = poll->Run(tracked, t)]() mutable { Apply(round); };
      },
      kRoundDeadline,
      [this] {
        late_ = true;
        TellState(
            Availability::kDown,
            "a query of NCCL's RAS service does not return: a process is stuck in the kernel");
      });
  if (!submitted) return;  // cannot be: nothing was pending
}

void NcclRas::Apply(Round& round) {
  if (std::exchange(late_, false)) TellState(Availability::kUp);
  lost_ = round.lost;
  for (Round::Answer& answer : round.answers) {
    Event event;
    event.type = WireType(EventType::kRasReport);
    event.process = answer.owner;
    const auto microseconds = static_cast<int64_t>(answer.answer.seconds * 1e6);
    if (answer.answer.silent && answer.silences <= kSilencesTold) {
      event.begin = round.t;
      event.str = {{"address", answer.address}, {"error", answer.answer.error}};
      event.num = {{"microseconds", microseconds}, {"silences", answer.silences}};
      Tell(event);
    }
    for (NcclRasDiary::Entry& entry : answer.told) {
      event.begin = entry.t;
      event.str = {{"address", answer.address}, {"text", std::move(entry.text)}};
      event.num = {{"microseconds", microseconds}, {"cut", answer.answer.cut ? 1 : 0}};
      Tell(event);
    }
    if (answer.numbers.empty()) continue;
    SampleBatch batch;
    batch.subject.kind = Subject::Kind::kProcess;
    batch.subject.process = answer.owner;
    batch.samples = std::move(answer.numbers);
    Tell(std::move(batch), {});
  }
}

}  // namespace rankscope::collectors
