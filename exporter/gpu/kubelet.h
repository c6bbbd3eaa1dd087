// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The source of which pod has which GPU, on a node of Kubernetes: asks the kubelet's pod-resources
// service on its Unix socket. That is gRPC, of which one call without content is one request of
// HTTP/2. For /metrics alone, under dcgm-exporter's names: only these may have the labels pod,
// namespace and container. Loop thread only; the kubelet is asked on a worker.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "detectors/model/gpu_reading.h"
#include "exporter/loop/event_loop.h"
#include "exporter/loop/http_client.h"
#include "exporter/loop/worker.h"
#include "exporter/source.h"

namespace rankscope::collectors {

class Kubelet final : public exporter::Source {
 public:
  // `socket` empty: there is none. A directory or a file that is not there is no kubelet.
  Kubelet(std::string socket, Duration interval);
  ~Kubelet() override;

  Status Start(exporter::EventLoop& loop, Sink& sink) override;
  void Stop() override;
  std::shared_ptr<const std::vector<GpuProfile>> gpu_profiles() const override {
    return published_;
  }

  struct Look {
    Availability state = Availability::kDown;
    std::string reason;
    std::vector<GpuProfile> pods;
  };
  // Asks once; blocks for seconds at most.
  static Look Ask(const std::string& socket);

 private:
  void LookLater();
  void Apply(Look look);

  std::string socket_;
  Duration interval_;
  std::unique_ptr<exporter::Worker> worker_;
  exporter::EventLoop::TimerId timer_ = 0;
  std::shared_ptr<const std::vector<GpuProfile>> published_;
};

}  // namespace rankscope::collectors
