// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/scrape.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "exporter/http/compression.h"
#include "exporter/http/negotiation.h"
#include "exporter/metrics/encoder.h"

namespace rankscope::http {
namespace {

using metrics::Format;
using metrics::GroupSet;

constexpr MediaParameter kText004[] = {{"version", "0.0.4"}};
constexpr MediaParameter kText100[] = {{"version", "1.0.0"}};
constexpr MediaParameter kOpenMetrics001[] = {{"version", "0.0.1"}};
constexpr MediaParameter kDelimited[] = {{"proto", "io.prometheus.client.MetricFamily"},
                                         {"encoding", "delimited"}};
constexpr std::string_view kOpenMetrics = "application/openmetrics-text";
constexpr std::string_view kProtobuf = "application/vnd.google.protobuf";
constexpr std::string_view kTextAnswer = "text/plain; version=0.0.4; charset=utf-8";

// Offers and what each is answered with; the first is the fallback. OpenMetrics and protobuf are
// for who names them. Text 1.0.0 is 0.0.4 with quoted names, of which there are none here;
// OpenMetrics 0.0.1 is the draft of 1.0.0 and differs in nothing that is used here.
constexpr std::array<Offer, 5> kOffers = {{
    {"text/plain", kText004},
    {"text/plain", kText100, true},
    {kOpenMetrics, kText100, true},
    {kOpenMetrics, kOpenMetrics001, true},
    {kProtobuf, kDelimited, true, true},
}};
constexpr std::array<std::pair<Format, std::string_view>, kOffers.size()> kAnswers = {{
    {Format::kText, kTextAnswer},
    {Format::kText, kTextAnswer},
    {Format::kOpenMetrics, "application/openmetrics-text; version=1.0.0; charset=utf-8"},
    {Format::kOpenMetrics, "application/openmetrics-text; version=0.0.1; charset=utf-8"},
    {Format::kProtobuf,
     "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; "
     "encoding=delimited"},
}};

Result<metrics::Group> GroupNamed(std::string_view name) {
  const auto& names = metrics::kGroupNames;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<metrics::Group>(found - names.begin());
  std::string error = "no group of metrics '" + std::string(name.substr(0, 100)) + "'; there are: ";
  for (const std::string_view known : names) {
    if (known != names.front()) error.append(", ");
    error.append(known);
  }
  return Error{error};
}

}  // namespace

std::vector<ScrapeOffer> ScrapeOffers() {
  std::vector<ScrapeOffer> out;
  for (size_t i = 0; i < kOffers.size(); ++i) {
    std::string accept(kOffers[i].type);
    for (const MediaParameter& parameter : kOffers[i].parameters) {
      accept.append(";").append(parameter.name).append("=").append(parameter.value);
    }
    out.push_back({std::move(accept), kAnswers[i].first, kAnswers[i].second});
  }
  return out;
}

ScrapeFormat ChooseScrapeFormat(std::string_view accept) {
  const Choice choice = Choose(accept, kOffers);
  const auto& [format, content_type] = kAnswers[choice.offer];
  ScrapeFormat out{format, std::string(content_type)};
  // All our names are legal in the legacy alphabet, which is what this scheme promises; who does
  // not know the parameter is not sent it.
  if (format == Format::kOpenMetrics && choice.range.Find("escaping") != nullptr) {
    out.content_type.append("; escaping=underscores");
  }
  return out;
}

Result<GroupSet> GroupsOf(const Parameters& parameters) {
  GroupSet collected = GroupSet::None();
  GroupSet others = GroupSet::All();
  for (const auto& [name, value] : parameters) {
    const bool collect = name == "collect[]";
    if (!collect && name != "exclude[]") continue;
    const Result<metrics::Group> group = GroupNamed(value);
    if (!group) return Error{group.error()};
    if (collect) {
      collected.Add(*group);
    } else {
      others.Remove(*group);
    }
  }
  const bool any_collected = !(collected == GroupSet::None());
  const bool any_excluded = !(others == GroupSet::All());
  if (any_collected && any_excluded) return Error{"collect[] and exclude[] at once; use one"};
  return any_collected ? collected : others;
}

Response Scrape(const Request& request, const Parameters& parameters, const State& state) {
  const Result<GroupSet> groups = GroupsOf(parameters);
  if (!groups) return Refusal(400, groups.error());
  const ScrapeFormat chosen = ChooseScrapeFormat(request.JoinedHeader("Accept"));
  Response response = Answer(chosen.content_type, "");
  response.scrape = chosen.format;
  if (*groups == GroupSet::All()) {
    if (WantsGzip(request.JoinedHeader("Accept-Encoding"))) {
      if (Page page = state.exposition().Whole(chosen.format, true)) {
        response.pages.push_back(std::move(page));
        response.headers.push_back({"Content-Encoding", "gzip"});
      }
    }
    if (response.pages.empty())
      response.pages.push_back(state.exposition().Whole(chosen.format, false));
  } else {
    metrics::Append(chosen.format, state.exposition().snapshot(), *groups, response.body);
  }
  return response;
}

}  // namespace rankscope::http
