// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/gpu/dcgm.h"

#include <utility>

#include "exporter/loop/http_url.h"

namespace rankscope::collectors {
namespace {

// 16 GPUs with all 7 parts of each, 60 metrics of 400 bytes: 3 MiB.
constexpr size_t kMostBytes = size_t{8} << 20;

constexpr char kMend[] = "; check gpu.dcgm_url";

// A rate that DCGM tells, as what has gone by since the page before.
void AddRate(GpuValue rate, double seconds, GpuValue& total) {
  if (rate) total = total.value_or(0) + *rate * seconds;
}

std::string StaleWords(size_t stale, size_t all, Duration after) {
  if (stale == 0) return {};
  return std::to_string(stale) + " of " + std::to_string(all) +
         " GPUs omitted: their values have not changed for " +
         std::to_string(static_cast<int64_t>(after.seconds())) + " s, so their age is unknown";
}

}  // namespace

Dcgm::Dcgm(std::string url, Duration interval, DcgmPatience patience)
    : url_text_(std::move(url)), interval_(interval), patience_(patience) {}

Dcgm::~Dcgm() {
  Stop();
}

Status Dcgm::Start(exporter::EventLoop& loop, Sink& sink) {
  loop_ = &loop;
  sink_ = &sink;
  if (url_text_.empty()) {
    TellState(Availability::kNotApplicable, "switched off: gpu.dcgm_url is empty");
    return {};
  }
  if (const Status url = exporter::CheckHttpUrl(url_text_); !url)
    return Error{"gpu.dcgm_url: " + url.error()};
  worker_ = std::make_unique<exporter::Worker>(loop);
  timer_ = loop.Every(interval_, [this] { Look(); });
  TellState(Availability::kNotApplicable, "no answer yet from dcgm-exporter at " + url_text_);
  Look();
  return {};
}

void Dcgm::Stop() {
  if (loop_ == nullptr) return;
  loop_->Cancel(std::exchange(timer_, 0));
  worker_.reset();
  Forget();
  loop_ = nullptr;
}

// What it said before is nothing that holds now.
void Dcgm::Forget() {
  last_ = {};
  published_.reset();
}

exporter::HttpRequest Dcgm::Request() const {
  exporter::HttpRequest request;
  request.url = url_text_;
  request.accept = "text/plain;version=0.0.4";
  request.connect_timeout = request.timeout = patience_.answer;
  request.max_bytes = kMostBytes;
  return request;
}

void Dcgm::Look() {
  if (worker_->pending() > 0) return;  // the last page is still under way
  const auto late = [this] {
    Forget();
    TellState(Availability::kDown, url_text_ + " does not answer in time" + kMend);
  };
  const bool submitted = worker_->Submit(
      [this, request = Request()]() -> std::function<void()> {
        exporter::HttpAnswer answer = exporter::HttpGet(request);
        DcgmPage content = ReadDcgmPage(answer.body);
        answer.body.clear();
        return [this, answer = std::move(answer), content = std::move(content)] {
          Apply(answer, content);
        };
      },
      // Names are resolved without a deadline of ours.
      {patience_.answer.ns + Seconds(1).ns}, late);
  if (!submitted) return;  // cannot be: nothing was pending
}

void Dcgm::Apply(const exporter::HttpAnswer& answer, const DcgmPage& content) {
  if (!answer.error.empty()) {
    Forget();
    if (answer.end == exporter::HttpAnswer::End::kRefused && !answered_) {
      TellState(Availability::kNotApplicable, "no dcgm-exporter at " + url_text_);
    } else {
      TellState(Availability::kDown, url_text_ + " " + answer.error + kMend);
    }
    return;
  }
  if (content.dcgm_samples + content.part_samples == 0) {
    Forget();
    const char* const what = content.samples > 0
                                 ? " has no DCGM_FI_ metrics, so it is not dcgm-exporter"
                                 : " serves no metrics";
    TellState(Availability::kDown, url_text_ + what + kMend);
    return;
  }
  answered_ = true;
  Take(content);
}

void Dcgm::Take(const DcgmPage& content) {
  const Timestamp now = loop_->Now();
  const double seconds = last_.ns == 0 ? 0 : static_cast<double>(now.ns - last_.ns) * 1e-9;
  last_ = now;
  std::map<std::string, Card> before = std::exchange(cards_, {});
  auto published = std::make_shared<std::vector<GpuProfile>>();
  size_t known = 0, stale = 0;
  for (const DcgmCard& read : content.cards) {
    if (!read.any) continue;
    ++known;
    Card card = std::move(before[read.uuid]);
    if (card.changed.ns == 0 || card.mark != read.mark) card.changed = now;
    card.mark = read.mark;
    const GpuProfile totals = std::exchange(card.profile, read.values);
    card.profile.uuid = read.uuid;
    constexpr GpuValue GpuProfile::*kRates[] = {
        &GpuProfile::pcie_received_bytes, &GpuProfile::pcie_sent_bytes,
        &GpuProfile::nvlink_received_bytes, &GpuProfile::nvlink_sent_bytes};
    card.stale = now.ns - card.changed.ns >= patience_.stale.ns;
    for (GpuValue GpuProfile::*const rate : kRates) {
      GpuValue total = totals.*rate;
      if (!card.stale) AddRate(card.profile.*rate, seconds, total);
      card.profile.*rate = total;
    }
    stale += card.stale ? 1 : 0;
    if (!card.stale) published->push_back(card.profile);
    cards_.emplace(read.uuid, std::move(card));
  }
  published_ = std::move(published);
  if (known == 0) {
    const bool parts = content.part_samples > 0 && content.dcgm_samples == 0;
    TellState(Availability::kUnsupported,
              url_text_ + (parts ? " has metrics of MIG instances only"
                                 : " has no DCGM_FI_PROF_* metrics; add them to the file of "
                                   "counters of dcgm-exporter (--collectors)"));
    return;
  }
  TellState(stale == known ? Availability::kStale : Availability::kUp,
            StaleWords(stale, known, patience_.stale));
}

}  // namespace rankscope::collectors
