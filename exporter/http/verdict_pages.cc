// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/verdict_pages.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "detectors/document/verdict_json.h"
#include "exporter/http/job_query.h"
#include "exporter/http/negotiation.h"

namespace rankscope::http {
namespace {

SharedPart NewPart(std::string text) {
  return std::make_shared<const Part>(std::move(text));
}

std::string JsonHead(const State& state) {
  std::string head = R"({"schema":1,"node":)";
  AppendJsonString(state.published().agent.node, head);
  return head + R"(,"verdicts":[)";
}

std::string JsonTail(const JobSlice& slice) {
  std::string tail = "]";
  if (!slice.next.empty()) AppendJsonString("/verdict" + slice.next, tail.append(R"(,"next":)"));
  return tail + "}\n";
}

std::string ProtobufHead(const State& state) {
  proto::VerdictDocument head;
  head.set_schema(1);
  head.set_node(state.published().agent.node);
  return head.SerializeAsString();
}

Parts Join(const JobSlice& slice, Form form, bool log_text, std::string_view between) {
  const SharedPart separator = NewPart(std::string(between));
  Parts parts;
  parts.reserve(2 * slice.jobs.size() + 2);
  for (const JobDocument* job : slice.jobs) {
    if (!parts.empty() && !between.empty()) parts.push_back(separator);
    parts.push_back(job->Verdict(form, log_text));
  }
  return parts;
}

Parts PartsOfPage(const State& state, const JobSlice& slice, Form form, bool log_text) {
  if (form == Form::kText && slice.jobs.empty())
    return {NewPart("no job has been seen on this node yet\n")};
  if (form == Form::kText) return Join(slice, form, log_text, "\n");
  Parts parts = Join(slice, form, log_text, form == Form::kJson ? "," : "");
  parts.insert(parts.begin(), NewPart(form == Form::kJson ? JsonHead(state) : ProtobufHead(state)));
  if (form == Form::kJson) parts.push_back(NewPart(JsonTail(slice)));
  return parts;
}

// One job's document stands alone as JSON and text, and in a document of one as protobuf.
Parts PartsOfJob(const State& state, const JobDocument& job, Form form, bool log_text) {
  if (form == Form::kProtobuf) return PartsOfPage(state, {{&job}, 1, {}}, form, log_text);
  Parts parts = {job.Verdict(form, log_text)};
  if (form == Form::kJson) parts.push_back(NewPart("\n"));
  return parts;
}

Response Answered(const Request& request, std::string_view content_type, const Parts& parts) {
  Response response = Answer(content_type, "");
  Tag(request, EntityTagOf(content_type, parts), response);
  if (response.status == 304) return response;
  size_t size = 0;
  for (const SharedPart& part : parts) size += part->plain().size();
  if (size >= kWorthCompressing && WantsGzip(request.JoinedHeader("Accept-Encoding"))) {
    response.pages = CompressedPages(parts);
  }
  if (response.pages.empty()) {
    response.pages = PlainPages(parts);
  } else {
    MarkCompressed(response);
  }
  return response;
}

struct Served {
  std::string_view content_type;
  Form form;
};
constexpr std::array<Served, 3> kServed = {{{"application/json", Form::kJson},
                                            {kPlainText, Form::kText},
                                            {"application/x-protobuf", Form::kProtobuf}}};

}  // namespace

const JobDocument* FindJob(const State& state, std::string_view job_id) {
  const JobDocument* found = nullptr;
  for (const auto& document : state.documents()) {
    if (document->job().job_id != job_id) continue;
    if (found == nullptr || document->job().running || !found->job().running)
      found = document.get();
  }
  return found;
}

Response UnknownJob(const State& state, std::string_view job_id) {
  constexpr size_t kNamed = 16;  // enough to find a mistyped one
  std::string detail = "no job '" + std::string(job_id.substr(0, 100)) + "' on this node; ";
  const metrics::JobList& jobs = state.published().jobs;
  if (jobs.empty()) return Problem(404, detail + "none has been seen yet");
  detail.append("known: ");
  for (size_t i = 0; i < std::min(jobs.size(), kNamed); ++i) {
    if (i > 0) detail.append(", ");
    detail.append(jobs[i]->job_id);
  }
  if (jobs.size() > kNamed) detail.append(", ...");
  return Problem(404, detail);
}

void Tag(const Request& request, std::string tag, Response& response) {
  const bool known = NamesTag(request.JoinedHeader("If-None-Match"), tag);
  response.headers.push_back({"ETag", std::move(tag)});
  if (!known) return;
  response.status = 304;
  response.body.clear();
}

Response VerdictPage(const Request& request, const Parameters& parameters, const State& state) {
  constexpr std::array<Offer, 3> kOffers = {
      {{"application/json"}, {"text/plain"}, {"application/x-protobuf"}}};
  const Served& served = kServed[Choose(request.JoinedHeader("Accept"), kOffers).offer];
  const bool log_text = request.role == Role::kLog;
  const Result<std::optional<std::string>> job_id = JobIdOf(parameters);
  if (!job_id) return Problem(400, job_id.error());
  const Result<JobQuery> query = JobQueryOf(parameters, kJobsOfPage, kMostJobsOfPage);
  if (!query) return Problem(400, query.error());
  if (*job_id) {
    const JobDocument* job = FindJob(state, **job_id);
    if (job == nullptr) return UnknownJob(state, **job_id);
    return Answered(request, served.content_type, PartsOfJob(state, *job, served.form, log_text));
  }
  const std::optional<JobSlice> slice = Select(state, *query);
  if (!slice) return Problem(400, "after: no such job is listed here any more; begin again");
  Response response =
      Answered(request, served.content_type, PartsOfPage(state, *slice, served.form, log_text));
  if (!slice->next.empty())
    response.headers.push_back({"Link", "</verdict" + slice->next + ">; rel=\"next\""});
  return response;
}

Response DigestPage(const Request& request, const Parameters& parameters, const State& state) {
  const Result<std::optional<std::string>> job_id = JobIdOf(parameters);
  if (!job_id) return Problem(400, job_id.error());
  if (!*job_id) return Problem(400, "the request names no job; add ?job_id=");
  const JobDocument* job = FindJob(state, **job_id);
  if (job == nullptr) return UnknownJob(state, **job_id);
  const proto::Verdict& verdict = job->job().verdict;
  return Answer(
      kPlainText,
      VerdictToDigest(request.role == Role::kLog ? verdict : WithoutLogText(verdict)) + "\n");
}

}  // namespace rankscope::http
