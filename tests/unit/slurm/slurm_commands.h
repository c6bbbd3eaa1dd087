// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Programs in the place of Slurm's, which note each call, and what a source tells of their answers.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "exporter/slurm/node_agent.h"
#include "tests/unit/agent/temporary_directory.h"

namespace rankscope::exporter::slurm {

class Facts final : public Sink {
 public:
  void Accept(const Observation& observation) override {
    if (const auto* fact = std::get_if<SchedulerFact>(&observation.kind)) facts.push_back(*fact);
    if (const auto* record = std::get_if<SchedulerRecord>(&observation.kind))
      records.push_back(*record);
    if (const auto* state = std::get_if<SourceState>(&observation.kind)) states.push_back(*state);
  }
  // The newest; an empty one where there is none.
  SchedulerRecord Record() const { return records.empty() ? SchedulerRecord() : records.back(); }
  std::vector<SchedulerFact> facts;
  std::vector<SchedulerRecord> records;
  std::vector<SourceState> states;
};

class SlurmCommands : public testing::Test {
 protected:
  // A program of Slurm's that notes its arguments and does what `body` says. In it, `rows` puts the
  // separator that was asked for in the place of each bar, and behind each line.
  void Install(const std::string& name, const std::string& body) {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path) << "#!/bin/sh\necho \"" << name << " $*\" >>" << folder_.path()
                        << "/calls\n"
                        << "for a; do case $a in --delimiter=*) s=${a#*=} ;; esac; done\n"
                        << "rows() { sed \"s/|/$s/g; s/\\$/$s/\"; }\n"
                        << body << "\n";
    chmod(path.c_str(), 0755);
  }
  std::string Calls() const {
    std::ifstream in(folder_.path() + "/calls");
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  size_t CallsOf(const std::string& name) const {
    const std::string calls = Calls();
    size_t count = 0;
    for (size_t at = calls.find(name + " "); at != std::string::npos;
         at = calls.find(name + " ", at + 1))
      ++count;
    return count;
  }
  Commands Programs() { return Commands({folder_.path()}, {}); }

  void Run(Source& source, double seconds) {
    EventLoop loop;
    ASSERT_TRUE(source.Start(loop, facts_));
    loop.After(Duration{static_cast<int64_t>(seconds * 1e9)}, [&] { loop.Stop(); });
    loop.Run();
    source.Stop();
  }

  NodeAgent::Patience Quick() const {
    NodeAgent::Patience patience;
    patience.settle = Milliseconds(1);
    patience.retry = Milliseconds(100);
    patience.call = Seconds(5);
    return patience;
  }

  TemporaryDirectory folder_;
  Facts facts_;
  std::shared_ptr<Questions> questions_ = std::make_shared<Questions>();
};

}  // namespace rankscope::exporter::slurm
