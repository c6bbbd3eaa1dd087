// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/metrics/self_metrics.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace rankscope::metrics {
namespace {

// By Keep; empty: never dropped.
constexpr std::array<std::string_view, kKeeps> kCapReasons = {"",
                                                              "",
                                                              "cap_gpu",
                                                              "cap_verdict",
                                                              "cap_job",
                                                              "cap_training",
                                                              "cap_dcgm",
                                                              "cap_gpu_detail",
                                                              "cap_slurm",
                                                              "cap_verdict_detail",
                                                              "cap_log",
                                                              "cap_rank",
                                                              "cap_rank_detail"};
static_assert(kCapReasons.back() == "cap_rank_detail", "a class of series without a reason");

std::optional<double> Value(const prometheus::MetricFamily& family,
                            const prometheus::ClientMetric& metric, MetricType wanted) {
  if (family.type == prometheus::MetricType::Counter && wanted == MetricType::kCounter) {
    return metric.counter.value;
  }
  if (family.type == prometheus::MetricType::Gauge && wanted != MetricType::kCounter &&
      wanted != MetricType::kHistogram) {
    return metric.gauge.value;
  }
  return std::nullopt;
}

// The metric's label values in the order of `names`; nullopt unless its label names are exactly
// these.
std::optional<std::vector<std::string_view>> ValuesInOrder(
    std::string_view names, const std::vector<prometheus::ClientMetric::Label>& labels) {
  std::vector<std::string_view> values;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    const auto label =
        std::find_if(labels.begin(), labels.end(), [&](const auto& l) { return l.name == name; });
    if (label == labels.end()) return std::nullopt;
    values.push_back(label->value);
  }
  if (values.size() != labels.size()) return std::nullopt;
  return values;
}

}  // namespace

std::string_view DropReason(Keep keep) {
  return kCapReasons[static_cast<size_t>(keep)];
}

SelfMetrics::SelfMetrics(const std::string& version) {
  // Help texts are the catalogue's.
  prometheus::BuildGauge()
      .Name("rankscope_build_info")
      .Register(registry_)
      .Add({{"version", version}, {"compiler", __VERSION__}})
      .Set(1);
  series_ = &prometheus::BuildGauge().Name("rankscope_series").Register(registry_).Add({});
  auto& dropped =
      prometheus::BuildCounter().Name("rankscope_series_dropped_total").Register(registry_);
  const auto add = [&](std::string_view reason) {
    dropped_.emplace(reason, &dropped.Add({{"reason", std::string(reason)}}));
  };
  for (const std::string_view reason : kCapReasons) {
    if (!reason.empty()) add(reason);
  }
  add(kOfEndedJob);
  add(kNotCatalogued);
  for (const auto& family : registry_.Collect()) series_count_ += family.metric.size();
}

void SelfMetrics::CountDropped(std::string_view reason, size_t series) {
  const auto found = dropped_.find(reason);
  if (found != dropped_.end()) found->second->Increment(static_cast<double>(series));
}

void ForEachSeries(const prometheus::Collectable& collectable,
                   const std::function<void(MetricId id, LabelPointer labels, double value)>& take,
                   const std::function<void(size_t series)>& dropped) {
  for (const prometheus::MetricFamily& family : collectable.Collect()) {
    const MetricRow* row = FindMetric(family.name);
    if (row == nullptr) {
      dropped(family.metric.size());
      continue;
    }
    for (const prometheus::ClientMetric& metric : family.metric) {
      const auto labels = ValuesInOrder(row->labels, metric.label);
      const std::optional<double> value = Value(family, metric, row->type);
      if (labels && value) {
        take(static_cast<MetricId>(row - Catalog().data()), MakeLabels(row->labels, *labels),
             *value);
      } else {
        dropped(1);
      }
    }
  }
}

}  // namespace rankscope::metrics
