// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/infiniband/infiniband.h"

#include <algorithm>
#include <set>

#include "detectors/model/event_types.h"

namespace rankscope::collectors {
namespace {

// A card in trouble answers its firmware's timeouts later, some seconds each.
constexpr Duration kLookDeadline = Seconds(20);

constexpr char kNoDevice[] = "no InfiniBand, RoCE or EFA device on this node";

}  // namespace

void Infiniband::Rising::Add(int64_t value) {
  if (value < 0) return;
  if (last != kNotCounted) total += value >= last ? value - last : value;
  last = value;
}

Infiniband::Infiniband(std::shared_ptr<ProcessTable> table, Duration interval, std::string sys_root)
    : table_(std::move(table)), interval_(interval), sys_root_(std::move(sys_root)) {}

Infiniband::~Infiniband() {
  Stop();
}

Status Infiniband::Start(exporter::EventLoop& loop, Sink& sink) {
  loop_ = &loop;
  sink_ = &sink;
  worker_ = std::make_unique<exporter::Worker>(loop);
  timer_ = loop.Every(interval_, [this] { Look(); });
  TellState(Availability::kNotApplicable, kNoDevice);  // until one has been seen
  Look();
  return {};
}

void Infiniband::Stop() {
  if (loop_ == nullptr) return;
  loop_->Cancel(timer_);
  worker_.reset();
  loop_ = nullptr;
}

void Infiniband::Look() {
  if (worker_->pending() > 0) return;  // the last look is still under way
  const bool submitted = worker_->Submit(
      [this, root = sys_root_]() -> std::function<void()> {
        return [this, readings = ReadPorts(root)] { Apply(readings); };
      },
      kLookDeadline,
      [this] {
        late_ = true;
        TellState(Availability::kDown,
                  "a read of the ports' counters does not return: an adapter does not respond to "
                  "its driver");
      });
  if (!submitted) return;  // cannot be: nothing was pending
}

void Infiniband::Apply(const std::vector<PortReading>& readings) {
  late_ = false;
  if (readings.empty()) {
    ports_.clear();
    TellState(Availability::kNotApplicable, kNoDevice);
    return;
  }
  TellState(Availability::kUp, {});
  std::set<PortName> seen;
  double received = 0, sent = 0, errors = 0;
  int64_t down = 0;
  for (const PortReading& reading : readings) {
    const PortName name{reading.device, reading.port};
    seen.insert(name);
    Port& port = ports_[name];
    if (table_->processes().empty()) port = {};  // nobody's bytes
    port.link = reading.link;
    port.received.Add(reading.received_bytes);
    port.sent.Add(reading.sent_bytes);
    for (size_t i = 0; i < reading.counts.size(); ++i) {
      const int64_t before = port.counts[i].total;
      port.counts[i].Add(reading.counts[i]);
      const bool fault = kPortCounterKinds[i].fault;
      if (fault) errors += static_cast<double>(port.counts[i].total);
      if (port.counts[i].total != before) (fault ? port.fault : port.other) = true;
    }
    const bool turned = port.up != reading.up || port.state != reading.state;
    ++port.looks;
    if ((turned && port.looks >= kStateLooks) || (port.fault && port.looks >= kFaultLooks) ||
        (port.other && port.looks >= kQuietLooks)) {
      ++port.version;
      port.looks = 0;
      port.fault = port.other = false;
    } else if (turned) {
      port.fault = true;  // told with the next faults
    }
    port.up = reading.up;
    port.state = reading.state;
    received += static_cast<double>(port.received.total);
    sent += static_cast<double>(port.sent.total);
    if (!port.up) ++down;
  }
  std::erase_if(ports_, [&seen](const auto& entry) { return !seen.contains(entry.first); });
  SampleBatch batch;
  batch.subject.kind = Subject::Kind::kHost;
  batch.samples = {{SignalId::kRdmaReceivedBytes, static_cast<double>(received)},
                   {SignalId::kRdmaSentBytes, static_cast<double>(sent)},
                   {SignalId::kRdmaErrors, static_cast<double>(errors)},
                   {SignalId::kRdmaPortsDown, static_cast<double>(down)}};
  Tell(std::move(batch));
  TellPorts();
}

// To one process of each job: the topmost one that is watched.
void Infiniband::TellPorts() {
  constexpr size_t kMaxJobs = 64;
  std::map<std::string, ProcessKey> jobs;
  const auto& processes = table_->processes();
  for (const auto& [pid, process] : processes) {
    if (processes.contains(process.parent.pid)) continue;
    const std::string name =
        process.job_id.empty() ? std::to_string(process.key.pid) : process.job_id;
    if (jobs.size() < kMaxJobs) jobs.try_emplace(name, process.key);
  }
  std::set<ProcessKey> standing;
  for (const auto& [name, key] : jobs) standing.insert(key);
  std::erase_if(told_, [&](const auto& entry) { return !standing.contains(entry.first); });
  for (const ProcessKey& key : standing) {
    std::map<PortName, int64_t>& told = told_[key];
    for (const auto& [name, port] : ports_) {
      const auto [version, first] = told.try_emplace(name, -1);
      if (version->second == port.version) continue;
      version->second = port.version;
      Event event;
      event.type = WireType(EventType::kPortCounters);
      event.process = key;
      event.str = {{"device", name.first},
                   {"port", name.second},
                   {"link", port.link},
                   {"state", port.state}};
      event.num = {{"up", port.up ? 1 : 0}};
      for (size_t i = 0; i < port.counts.size(); ++i) {
        if (port.counts[i].last == kNotCounted) continue;
        event.num.push_back({std::string(kPortCounterKinds[i].name), port.counts[i].total});
      }
      Tell(std::move(event));
    }
  }
}

}  // namespace rankscope::collectors
