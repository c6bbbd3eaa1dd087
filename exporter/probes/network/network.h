// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The source that has the kernel count how training processes reach each other: connections
// refused, unanswered, unreachable and made, listeners and ports in use, names that do not resolve,
// retransmits, resets, bytes. Looks twice a second at what the programs counted. Loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "bpf/events/net.h"
#include "exporter/loop/worker.h"
#include "exporter/probes/attach/probe_source.h"
#include "exporter/probes/attach/told.h"
#include "exporter/probes/network/network_programs.h"

namespace rankscope::probes {

class Network final : public ProbeSource {
 public:
  Network(std::shared_ptr<collectors::ProcessTable> table, std::shared_ptr<TrackedMap> tracked,
          bool force);
  ~Network() override;

  Status Start(exporter::EventLoop& loop, Sink& sink) override;
  void Stop() override;
  int64_t lost() const override;

 private:
  struct KeyOrder {
    bool operator()(const rs_net_key& a, const rs_net_key& b) const;
  };
  // Who is known by the kernel's counts; ended ones for a moment more.
  struct Known {
    ProcessKey key;
    rs_net_process last{};
  };

  void Look();
  void TellFacts(const NetworkCounts& counts);
  void TellWaiting(const NetworkCounts& counts);
  void TellNumbers(const NetworkCounts& counts);
  void ForgetEnded(const NetworkCounts& counts);
  void OnLookup(const rs_net_lookup& lookup);
  void ExamineLibraries();
  void Examine(const ProcessKey& key);
  // The process that the kernel counts under this pid; nullopt for strangers.
  std::optional<ProcessKey> Resolve(uint32_t pid, uint64_t start_ns);
  bool HasNews(const rs_net_key& key, uint64_t times);

  exporter::EventLoop::TimerId timer_ = 0;
  std::unique_ptr<NetworkPrograms> programs_;
  std::unique_ptr<exporter::Worker> worker_;
  std::map<uint32_t, Known> known_;            // by pid; as many as the kernel's map holds
  std::map<rs_net_key, Told, KeyOrder> told_;  // as many as the kernel's map holds
  // Failed look-ups by process and name: how often. At most kMaxNames; a rank asks for few.
  static constexpr size_t kMaxNames = 1024;
  std::map<std::pair<uint32_t, std::string>, Told> names_;
  // Since when a process is known, and how often its libraries were looked at; as many as the
  // process table holds.
  struct Examined {
    Timestamp since;
    int times = 0;
  };
  std::map<ProcessKey, Examined> examined_;
  // Device and inode of the libraries that have probes, or cannot have; of the worker.
  using Libraries = std::set<std::pair<std::string, std::string>>;
  std::shared_ptr<Libraries> libraries_;
  int64_t looks_ = 0;
  int64_t lost_before_ = 0;
  int64_t dropped_ = 0;
};

}  // namespace rankscope::probes
