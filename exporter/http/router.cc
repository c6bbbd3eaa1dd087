// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/router.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "detectors/verdict_json.h"
#include "exporter/http/documents.h"
#include "exporter/http/negotiation.h"
#include "exporter/http/target.h"
#include "exporter/metrics/encoder.h"
#include "exporter/web/status_page.h"

namespace rankscope::http {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kText = "text/plain; charset=utf-8";

struct Question {
  const Request& request;
  const Parameters& parameters;
  const State& state;
  const RouterOptions& options;
};

bool SameName(std::string_view a, std::string_view b) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

std::string_view Find(const std::vector<Header>& headers, std::string_view name) {
  const auto header = std::find_if(headers.begin(), headers.end(),
                                   [&](const Header& h) { return SameName(h.name, name); });
  return header == headers.end() ? std::string_view() : std::string_view(header->value);
}

// A list header may be sent in several lines.
std::string Joined(const Request& request, std::string_view name) {
  std::string out;
  for (const Header& header : request.headers) {
    if (!SameName(header.name, name)) continue;
    if (!out.empty()) out.append(", ");
    out.append(header.value);
  }
  return out;
}

Response Answer(std::string_view content_type, std::string body) {
  return {200, {{"Content-Type", std::string(content_type)}}, std::move(body)};
}

// With an entity tag, and without a body where the client has this very content.
Response Tagged(const Request& request, std::string_view content_type, std::string body) {
  std::string tag = EntityTag(content_type, body);
  Response response = Answer(content_type, std::move(body));
  const bool known = NamesTag(Joined(request, "If-None-Match"), tag);
  response.headers.push_back({"ETag", std::move(tag)});
  if (known) {
    response.status = 304;
    response.body.clear();
  }
  return response;
}

Response UnknownJob(const State& state, std::string_view job_id) {
  constexpr size_t kNamed = 16;  // enough to find a mistyped one
  std::string detail = "no job '" + std::string(job_id.substr(0, 100)) + "' on this node; ";
  const auto& jobs = state.published->jobs;
  if (jobs.empty()) return Problem(404, detail + "none has been seen yet");
  detail.append("known: ");
  for (size_t i = 0; i < std::min(jobs.size(), kNamed); ++i) {
    if (i > 0) detail.append(", ");
    detail.append(jobs[i].job_id);
  }
  if (jobs.size() > kNamed) detail.append(", ...");
  return Problem(404, detail);
}

// A reused id names two jobs: the running one, else the later.
const JobStatus* FindJob(const State& state, std::string_view job_id) {
  const JobStatus* found = nullptr;
  for (const JobStatus& job : state.published->jobs) {
    if (job.job_id != job_id) continue;
    if (found == nullptr || job.running || !found->running) found = &job;
  }
  return found;
}

Response Metrics(const Question& question) {
  std::vector<std::string_view> offers;
  for (const metrics::Encoding& encoding : metrics::Encodings()) {
    offers.push_back(encoding.media_type);
  }
  const size_t chosen = ChooseMediaType(Joined(question.request, "Accept"), offers);
  const metrics::Encoding& encoding = metrics::Encodings()[chosen];
  std::string body;
  encoding.append(*question.state.snapshot, body);
  Response response = Answer(encoding.content_type, std::move(body));
  response.headers.push_back({"Vary", "Accept"});
  return response;
}

std::string VerdictsText(const std::vector<const JobStatus*>& jobs) {
  if (jobs.empty()) return "no job has been seen on this node yet\n";
  std::string out;
  for (const JobStatus* job : jobs) {
    if (!out.empty()) out.push_back('\n');
    out.append(VerdictToText(job->verdict));
  }
  return out;
}

proto::VerdictDocument Document(const State& state, const std::vector<const JobStatus*>& jobs) {
  proto::VerdictDocument document;
  document.set_schema(1);
  document.set_node(state.published->agent.node);
  for (const JobStatus* job : jobs) *document.add_verdicts() = job->verdict;
  return document;
}

// One job's document stands alone as JSON, and in a document of one as protobuf.
Response Verdict(const Question& question) {
  const Result<std::optional<std::string>> job_id = JobIdOf(question.parameters);
  if (!job_id) return Problem(400, job_id.error());
  std::vector<const JobStatus*> jobs;
  if (*job_id) {
    jobs.push_back(FindJob(question.state, **job_id));
    if (jobs.front() == nullptr) return UnknownJob(question.state, **job_id);
  } else {
    for (const JobStatus& job : question.state.published->jobs) jobs.push_back(&job);
  }
  constexpr std::string_view kProtobuf = "application/x-protobuf";
  constexpr std::array<std::string_view, 3> kOffers = {kJson, "text/plain", kProtobuf};
  Response response;
  switch (ChooseMediaType(Joined(question.request, "Accept"), kOffers)) {
    case 1:
      response = Tagged(question.request, kText, VerdictsText(jobs));
      break;
    case 2:
      response =
          Tagged(question.request, kProtobuf, Document(question.state, jobs).SerializeAsString());
      break;
    default:
      response = Tagged(question.request, kJson,
                        (*job_id ? VerdictToJson(jobs.front()->verdict)
                                 : DocumentToJson(Document(question.state, jobs))) +
                            "\n");
  }
  response.headers.push_back({"Vary", "Accept"});
  return response;
}

Response OfOneJob(const Question& question, std::string (*document)(const JobStatus&)) {
  const Result<std::optional<std::string>> job_id = JobIdOf(question.parameters);
  if (!job_id) return Problem(400, job_id.error());
  if (!*job_id) return Problem(400, "no job is named; ask with ?job_id=");
  const JobStatus* job = FindJob(question.state, **job_id);
  if (job == nullptr) return UnknownJob(question.state, **job_id);
  return Tagged(question.request, kJson, document(*job) + "\n");
}

Response Evidence(const Question& question) {
  return OfOneJob(question, EvidenceJson);
}
Response Events(const Question& question) {
  return OfOneJob(question, EventsJson);
}

Response Explain(const Question& question) {
  if (!question.options.explain) return Problem(404, "this process does not attribute processes");
  int32_t pid = 0;
  for (const auto& [name, value] : question.parameters) {
    if (name != "pid") continue;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), pid);
    if (parsed.ec != std::errc() || parsed.ptr != value.data() + value.size()) pid = 0;
  }
  if (pid <= 0) return Problem(400, "no process is named; ask with ?pid= and a positive number");
  const std::optional<std::string> text = question.options.explain(pid, question.request.deadline);
  if (!text) return Problem(503, "the event loop did not answer in time; ask again");
  if (text->empty()) {
    return Problem(404, "process " + std::to_string(pid) + " belongs to no job known here");
  }
  return Answer(kText, *text);
}

Response Healthy(const Question&) {
  return Answer(kText, "rankscope is healthy.\n");
}

Response Ready(const Question& question) {
  const metrics::AgentStatus& agent = question.state.published->agent;
  if (agent.ready) return Answer(kText, "rankscope is ready.\n");
  const std::string& reason = agent.not_ready_reason;
  return Problem(503, "not ready: " + (reason.empty() ? "still starting" : reason));
}

Response StatusPage(const Question& question) {
  Response response =
      Answer("text/html; charset=utf-8", web::StatusPage(*question.state.published));
  response.headers.push_back({"Content-Security-Policy", web::ContentSecurityPolicy()});
  response.headers.push_back({"X-Frame-Options", "DENY"});
  response.headers.push_back({"Referrer-Policy", "no-referrer"});
  return response;
}

struct Route {
  std::string_view path;
  Response (*answer)(const Question&);
};

constexpr Route kRoutes[] = {
    {"/", StatusPage},    {"/-/healthy", Healthy}, {"/-/ready", Ready},
    {"/events", Events},  {"/evidence", Evidence}, {"/explain", Explain},
    {"/health", Healthy}, {"/metrics", Metrics},   {"/verdict", Verdict},
};

Response Dispatch(const Request& request, const State& state, const RouterOptions& options) {
  if (request.path.size() + request.query.size() > kMaxTargetBytes) {
    return Problem(414,
                   "path and query have more than " + std::to_string(kMaxTargetBytes) + " bytes");
  }
  const Result<std::string> path = DecodePath(request.path);
  if (!path) return Problem(400, path.error());
  const auto route = std::find_if(std::begin(kRoutes), std::end(kRoutes),
                                  [&](const Route& r) { return r.path == *path; });
  if (route == std::end(kRoutes)) {
    return Problem(404, "nothing is served at this path; see / for what is");
  }
  if (request.method != "GET" && request.method != "HEAD") {
    Response response = Problem(405, "only GET and HEAD are answered");
    response.headers.push_back({"Allow", "GET, HEAD"});
    return response;
  }
  const Result<Parameters> parameters = ParseQuery(request.query);
  if (!parameters) return Problem(400, parameters.error());
  return route->answer({request, *parameters, state, options});
}

}  // namespace

std::string_view Request::HeaderValue(std::string_view name) const {
  return Find(headers, name);
}
std::string_view Response::HeaderValue(std::string_view name) const {
  return Find(headers, name);
}

std::string_view ReasonPhrase(int status) {
  static constexpr std::pair<int, std::string_view> kPhrases[] = {
      {200, "OK"},
      {304, "Not Modified"},
      {400, "Bad Request"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {411, "Length Required"},
      {413, "Content Too Large"},
      {414, "URI Too Long"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {503, "Service Unavailable"},
      {505, "HTTP Version Not Supported"},
  };
  for (const auto& [code, phrase] : kPhrases) {
    if (code == status) return phrase;
  }
  return "Error";
}

Response Problem(int status, std::string_view detail) {
  std::string body = R"({"type":"about:blank","title":)";
  AppendJsonString(ReasonPhrase(status), body);
  body.append(R"(,"status":)").append(std::to_string(status)).append(R"(,"detail":)");
  AppendJsonString(detail, body);
  body.append("}\n");
  return {status, {{"Content-Type", "application/problem+json"}}, std::move(body)};
}

Response Router::Handle(const Request& request, const State& state) const {
  Response response = Dispatch(request, state, options_);
  response.headers.push_back({"Cache-Control", "no-store"});
  response.headers.push_back({"X-Content-Type-Options", "nosniff"});
  return response;
}

}  // namespace rankscope::http
