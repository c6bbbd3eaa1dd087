// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// /metrics: which exposition format a client gets, and which families. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/result.h"
#include "exporter/http/message.h"
#include "exporter/http/state.h"
#include "exporter/http/target.h"
#include "exporter/metrics/format.h"

namespace rankscope::http {

struct ScrapeFormat {
  metrics::Format format = metrics::Format::kText;
  std::string content_type;
};

// What is offered, for documentation: a media range of Accept, and what answers it.
struct ScrapeOffer {
  std::string accept;
  metrics::Format format;
  std::string_view content_type;
};
std::vector<ScrapeOffer> ScrapeOffers();

// By an Accept header. Who names no format that is offered gets text 0.0.4, never 406.
ScrapeFormat ChooseScrapeFormat(std::string_view accept);

// ?collect[]=a&collect[]=b only these groups, ?exclude[]=a all but these; not both.
Result<metrics::GroupSet> GroupsOf(const Parameters& parameters);

Response Scrape(const Request& request, const Parameters& parameters, const State& state);

}  // namespace rankscope::http
