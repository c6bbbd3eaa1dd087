// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/verdict_pages.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "detectors/document/verdict_json.h"
#include "detectors/model/percent_encode.h"
#include "exporter/http/negotiation.h"

namespace rankscope::http {
namespace {

struct Slice {
  std::vector<const JobDocument*> jobs;
  std::string next;  // target of the page behind it; empty: this is the last
};

Result<size_t> LimitOf(const Parameters& parameters) {
  size_t limit = kJobsOfPage;
  for (const auto& [name, value] : parameters) {
    if (name != "limit") continue;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), limit);
    if (parsed.ec != std::errc() || parsed.ptr != value.data() + value.size() || limit < 1 ||
        limit > kMostJobsOfPage) {
      return Error{"limit: '" + value.substr(0, 60) + "' is not a number from 1 to " +
                   std::to_string(kMostJobsOfPage)};
    }
  }
  return limit;
}

Result<std::string> AfterOf(const Parameters& parameters) {
  std::string after;
  for (const auto& [name, value] : parameters) {
    if (name != "after") continue;
    if (value.empty()) return Error{"after is empty; give a job id, or leave it out"};
    after = value;
  }
  return after;
}

Slice Cut(const State& state, size_t limit, const std::string& after) {
  Slice slice;
  for (const auto& document : state.documents()) {
    const std::string& id = document->job().job_id;
    if (!after.empty() && id <= after) continue;
    // Jobs that share an id stand on one page, as no `after` could name one of them.
    if (slice.jobs.size() >= limit && slice.jobs.back()->job().job_id != id) {
      slice.next = "/verdict?limit=" + std::to_string(limit) +
                   "&after=" + PercentEncode(slice.jobs.back()->job().job_id);
      break;
    }
    slice.jobs.push_back(document.get());
  }
  return slice;
}

SharedPart NewPart(std::string text) {
  return std::make_shared<const Part>(std::move(text));
}

std::string JsonHead(const State& state) {
  std::string head = R"({"schema":1,"node":)";
  AppendJsonString(state.published().agent.node, head);
  return head + R"(,"verdicts":[)";
}

std::string JsonTail(const Slice& slice) {
  std::string tail = "]";
  if (!slice.next.empty()) AppendJsonString(slice.next, tail.append(R"(,"next":)"));
  return tail + "}\n";
}

std::string ProtobufHead(const State& state) {
  proto::VerdictDocument head;
  head.set_schema(1);
  head.set_node(state.published().agent.node);
  return head.SerializeAsString();
}

Parts Join(const Slice& slice, Form form, bool log_text, std::string_view between) {
  const SharedPart separator = NewPart(std::string(between));
  Parts parts;
  parts.reserve(2 * slice.jobs.size() + 2);
  for (const JobDocument* job : slice.jobs) {
    if (!parts.empty() && !between.empty()) parts.push_back(separator);
    parts.push_back(job->Verdict(form, log_text));
  }
  return parts;
}

Parts PartsOfPage(const State& state, const Slice& slice, Form form, bool log_text) {
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
  if (form == Form::kProtobuf) return PartsOfPage(state, {{&job}, {}}, form, log_text);
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
  if (*job_id) {
    const JobDocument* job = FindJob(state, **job_id);
    if (job == nullptr) return UnknownJob(state, **job_id);
    return Answered(request, served.content_type, PartsOfJob(state, *job, served.form, log_text));
  }
  const Result<size_t> limit = LimitOf(parameters);
  if (!limit) return Problem(400, limit.error());
  const Result<std::string> after = AfterOf(parameters);
  if (!after) return Problem(400, after.error());
  const Slice slice = Cut(state, *limit, *after);
  Response response =
      Answered(request, served.content_type, PartsOfPage(state, slice, served.form, log_text));
  if (!slice.next.empty())
    response.headers.push_back({"Link", "<" + slice.next + ">; rel=\"next\""});
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
