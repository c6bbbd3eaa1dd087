// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The source of what an own dcgm-exporter of the node counts of GPUs whose driver does not count
// it for us (GPM is Hopper's and later): read from its page, and shown beside what NVML tells. It
// repeats its newest values until it has others, so a page that stands still for kStale is not
// believed any more. For /metrics alone: its values are means over its own period (30 s, as it
// comes), and what judges runs looks for what changes within seconds. Loop thread only; the page is
// fetched on a worker.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "detectors/model/gpu_reading.h"
#include "detectors/model/observation.h"
#include "exporter/gpu/dcgm_page.h"
#include "exporter/loop/event_loop.h"
#include "exporter/loop/http_client.h"
#include "exporter/loop/worker.h"
#include "exporter/source.h"

namespace rankscope::collectors {

struct DcgmPatience {
  Duration answer = Seconds(5);
  // Four of dcgm-exporter's own periods. Its default page has power and energy, which never stand
  // still on a GPU that is powered; without them, an idle GPU's is given up as well.
  Duration stale = Seconds(120);
};

class Dcgm final : public exporter::Source {
 public:
  // `url` empty: there is none.
  Dcgm(std::string url, Duration interval, DcgmPatience patience = {});
  ~Dcgm() override;

  Status Start(exporter::EventLoop& loop, Sink& sink) override;
  void Stop() override;
  std::shared_ptr<const std::vector<GpuProfile>> gpu_profiles() const override {
    return published_;
  }

 private:
  struct Card {
    uint64_t mark = 0;
    Timestamp changed;
    bool stale = false;
    GpuProfile profile;  // bytes: since the first page
  };

  exporter::HttpRequest Request() const;
  void Look();
  void Apply(const exporter::HttpAnswer& answer, const DcgmPage& content);
  void Take(const DcgmPage& content);
  void Forget();

  std::string url_text_;
  Duration interval_;
  DcgmPatience patience_;
  std::unique_ptr<exporter::Worker> worker_;
  exporter::EventLoop::TimerId timer_ = 0;
  bool answered_ = false;  // once, as dcgm-exporter does
  Timestamp last_;         // page that was taken; 0 = none, or not the look before
  std::map<std::string, Card> cards_;
  std::shared_ptr<const std::vector<GpuProfile>> published_;
};

}  // namespace rankscope::collectors
