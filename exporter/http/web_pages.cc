// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/web_pages.h"

#include <utility>

#include "exporter/http/job_query.h"
#include "exporter/http/negotiation.h"
#include "exporter/http/verdict_pages.h"
#include "exporter/web/home_page.h"
#include "exporter/web/job_page.h"
#include "exporter/web/node_page.h"
#include "exporter/web/shell.h"

namespace rankscope::http {
namespace {

constexpr std::string_view kHtml = "text/html; charset=utf-8";

Response HtmlAnswer(const Request& request, std::string html) {
  std::string tag = EntityTag(kHtml, html);
  Response response = Answer(kHtml, std::move(html));
  Tag(request, std::move(tag), response);
  response.headers.push_back({"Content-Security-Policy", web::ContentSecurityPolicy()});
  response.headers.push_back({"X-Frame-Options", "DENY"});
  response.headers.push_back({"Referrer-Policy", "no-referrer"});
  return response;
}

}  // namespace

Response HomePage(const Request& request, const Parameters& parameters, const State& state) {
  const Result<JobQuery> query = JobQueryOf(parameters, kJobsOfHomePage, kMostJobsOfPage);
  if (!query) return Refusal(400, query.error());
  const std::optional<JobSlice> slice = Select(state, *query);
  if (!slice) return Refusal(400, "after: no such job is listed here any more; begin again at /");
  web::JobListing listing;
  listing.matching = slice->matching;
  listing.next = slice->next;
  for (const JobDocument* document : slice->jobs) listing.jobs.push_back(&document->job());
  for (const auto& [name, value] : {std::pair("severity", &query->severity),
                                    {"state", &query->state},
                                    {"family", &query->family},
                                    {"user", &query->user},
                                    {"partition", &query->partition},
                                    {"node", &query->node}}) {
    if (!value->empty()) listing.filters.emplace_back(name, *value);
  }
  return HtmlAnswer(request, web::HomePage(listing, state.published()));
}

Response JobPage(const Request& request, std::string_view job_id, const State& state) {
  const JobDocument* const document = FindJob(state, job_id);
  if (document == nullptr) return UnknownJob(state, job_id);
  if (request.role == Role::kLog)
    return HtmlAnswer(request, web::JobPage(document->job(), state.published()));
  return HtmlAnswer(request, web::JobPage(WithoutLogText(document->job()), state.published()));
}

Response NodePage(const Request& request, const State& state) {
  return HtmlAnswer(request, web::NodePage(state.published()));
}

}  // namespace rankscope::http
