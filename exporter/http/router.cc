// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/router.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "exporter/http/compression.h"
#include "exporter/http/documents.h"
#include "exporter/http/negotiation.h"
#include "exporter/http/scrape.h"
#include "exporter/http/target.h"
#include "exporter/http/verdict_pages.h"
#include "exporter/http/web_pages.h"

namespace rankscope::http {
namespace {

constexpr std::string_view kJson = "application/json";

struct Question {
  const Request& request;
  const Parameters& parameters;
  const State& state;
  const RouterOptions& options;
  std::string_view below = {};  // of the path, behind that of the route
};

Response Tagged(const Request& request, std::string_view content_type, std::string body) {
  std::string tag = EntityTag(content_type, body);
  Response response = Answer(content_type, std::move(body));
  Tag(request, std::move(tag), response);
  return response;
}

Response Metrics(const Question& question) {
  return Scrape(question.request, question.parameters, question.state);
}

Response Digest(const Question& question) {
  return DigestPage(question.request, question.parameters, question.state);
}

Response Verdict(const Question& question) {
  return VerdictPage(question.request, question.parameters, question.state);
}

// A job as this client may see it.
JobStatus Seen(const Question& question, const JobDocument& document) {
  return question.request.role == Role::kLog ? document.job() : WithoutLogText(document.job());
}

Response OfOneJob(const Question& question, std::string (*document)(const JobStatus&)) {
  const Result<std::optional<std::string>> job_id = JobIdOf(question.parameters);
  if (!job_id) return Problem(400, job_id.error());
  if (!*job_id) return Problem(400, "the request names no job; add ?job_id=");
  const JobDocument* job = FindJob(question.state, **job_id);
  if (job == nullptr) return UnknownJob(question.state, **job_id);
  return Tagged(question.request, kJson, document(Seen(question, *job)) + "\n");
}

Response Evidence(const Question& question) {
  return OfOneJob(question, EvidenceJson);
}
// What an instance beside Slurm's controller keeps; null: this is none.
const SlurmReport* ReportOf(const State& state) {
  for (const metrics::SourceStatus& source : state.published().agent.sources) {
    if (source.slurm != nullptr) return source.slurm.get();
  }
  return nullptr;
}

// ?since= and ?after= of /events.
Result<exporter::slurm::EventQuery> QueryOf(const Parameters& parameters) {
  exporter::slurm::EventQuery query;
  for (const auto& [name, value] : parameters) {
    if (name == "since") {
      const std::optional<int64_t> since = ParseWallTime(value);
      if (!since)
        return Error{"since: '" + value.substr(0, 60) +
                     "' is not a time; write seconds since 1970 or 2026-11-20T16:00:50Z"};
      query.since_ns = *since;
    } else if (name == "after") {
      const auto parsed = std::from_chars(value.data(), value.data() + value.size(), query.after);
      if (parsed.ec != std::errc() || parsed.ptr != value.data() + value.size())
        return Error{"after: '" + value.substr(0, 60) + "' is not the number of an event"};
    }
  }
  return query;
}

Response Events(const Question& question) {
  const SlurmReport* report = ReportOf(question.state);
  if (report == nullptr)
    return OfOneJob(question, [](const JobStatus& job) { return EventsJson(job); });
  const Result<std::optional<std::string>> job_id = JobIdOf(question.parameters);
  if (!job_id) return Problem(400, job_id.error());
  auto query = QueryOf(question.parameters);
  if (!query) return Problem(400, query.error());
  query->job_id = job_id->value_or("");
  const JobDocument* const found = *job_id ? FindJob(question.state, **job_id) : nullptr;
  std::optional<JobStatus> job;
  if (found != nullptr) job = Seen(question, *found);
  return Tagged(question.request, kJson, EventsJson(job ? &*job : nullptr, *report, *query) + "\n");
}

// As kept for those who go on from a job: text is the line itself.
Response Summary(const Question& question) {
  const Result<std::optional<std::string>> job_id = JobIdOf(question.parameters);
  if (!job_id) return Problem(400, job_id.error());
  if (!*job_id) return Problem(400, "the request names no job; add ?job_id=");
  const auto& lines = question.state.published().summaries;
  const std::string_view line = lines == nullptr ? std::string_view() : LineOfJob(*lines, **job_id);
  const std::optional<JobSummary> summary = ReadJobSummary(line);
  if (!summary) {
    return Problem(404, "no summary of job '" + (*job_id)->substr(0, 100) +
                            "' here; a summary is kept when a job's verdict is final");
  }
  constexpr std::array<Offer, 2> kOffers = {{{kJson}, {"text/plain"}}};
  if (Choose(question.request.JoinedHeader("Accept"), kOffers).offer == 1)
    return Tagged(question.request, kPlainText, std::string(line) + "\n");
  return Tagged(question.request, kJson, SummaryJson(*summary, line) + "\n");
}

Response Explain(const Question& question) {
  if (!question.options.explain) return Problem(404, "this process does not attribute processes");
  int32_t pid = 0;
  for (const auto& [name, value] : question.parameters) {
    if (name != "pid") continue;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), pid);
    if (parsed.ec != std::errc() || parsed.ptr != value.data() + value.size()) pid = 0;
  }
  if (pid <= 0)
    return Problem(400, "the request names no process; add ?pid= with a positive number");
  const std::optional<std::string> text = question.options.explain(pid, question.request.deadline);
  if (!text) return Problem(503, "the event loop did not answer in time; try again");
  if (text->empty()) {
    return Problem(404, "process " + std::to_string(pid) + " belongs to no job known here");
  }
  return Answer(kPlainText, *text);
}

// Why a probe fails that grants `age` to the newest tick; empty: it does not.
std::string Stale(const Question& question, Duration age) {
  const metrics::Published& published = question.state.published();
  if (!question.options.now) return {};
  const Duration since = question.options.now() - published.tick;
  const Duration granted = published.agent.ready ? age : kLongestStart;
  if (since <= granted) return {};
  return (published.agent.ready ? "the daemon's last tick was " : "starting: no progress for ") +
         std::to_string(since.ns / 1'000'000'000) +
         (published.agent.ready ? " s ago; one is due each second" : " s");
}

Response Healthy(const Question& question) {
  const std::string stale = Stale(question, kHealthyAge);
  if (!stale.empty()) return Problem(503, "not healthy: " + stale);
  return Answer(kPlainText, "rankscope is healthy.\n");
}

Response Ready(const Question& question) {
  const metrics::AgentStatus& agent = question.state.published().agent;
  const std::string stale = Stale(question, kReadyAge);
  if (!stale.empty()) return Problem(503, "not ready: " + stale);
  if (agent.ready) return Answer(kPlainText, "rankscope is ready.\n");
  const std::string& reason = agent.not_ready_reason;
  return Problem(503, "not ready: " + (reason.empty() ? "still starting" : reason));
}

Response Home(const Question& question) {
  return HomePage(question.request, question.parameters, question.state);
}

Response Node(const Question& question) {
  return NodePage(question.request, question.state);
}

Response Job(const Question& question) {
  return JobPage(question.request, question.below, question.state);
}

Response Configuration(const Question& question) {
  if (!question.options.config) return Problem(404, "this process has no configuration");
  const std::optional<std::string> text = question.options.config(question.request.deadline);
  if (!text) return Problem(503, "the event loop did not answer in time; try again");
  return Answer("application/yaml; charset=utf-8", *text);
}

// A page of another site can send this, too: a browser says then where it comes from.
Response Reload(const Question& question) {
  if (!question.options.reload) {
    return Refusal(403, "web.enable_lifecycle is false; send SIGHUP to the daemon instead");
  }
  if (!question.request.HeaderValue("Origin").empty())
    return Refusal(403, "a page in a browser may not do this");
  const Status read = question.options.reload(question.request.deadline);
  if (!read) return Refusal(500, "the configuration stays as it was: " + read.error());
  return Answer(kPlainText, "the configuration was read again\n");
}

struct Route {
  std::string_view path;  // ends with '/': all that is below it
  Response (*answer)(const Question&);
  Role least = Role::kVerdict;
  bool by_accept = false;  // what is answered depends on Accept
  bool acts = false;       // answers POST and nothing else
};

constexpr Route kRoutes[] = {
    {"/", Home},
    {"/-/healthy", Healthy, Role::kMetrics},
    {"/-/ready", Ready, Role::kMetrics},
    {"/-/reload", Reload, Role::kLog, false, true},
    {"/config", Configuration, Role::kLog},
    {"/digest", Digest},
    {"/events", Events},
    {"/evidence", Evidence},
    {"/explain", Explain},
    {"/health", Healthy, Role::kMetrics},
    {"/job/", Job},
    {"/metrics", Metrics, Role::kMetrics, true},
    {"/node", Node},
    {"/summary", Summary, Role::kVerdict, true},
    {"/verdict", Verdict, Role::kVerdict, true},
};

bool Leads(const Route& route, std::string_view path) {
  if (route.path == "/" || !route.path.ends_with('/')) return route.path == path;
  return path.starts_with(route.path) && path.size() > route.path.size();
}

// Compresses for whoever asks.
void Compress(const Request& request, Response& response) {
  if (response.status != 200 || !response.pages.empty() ||
      response.body.size() < kWorthCompressing ||
      !WantsGzip(request.JoinedHeader("Accept-Encoding"))) {
    return;
  }
  std::optional<std::string> packed = Gzip(response.body);
  if (!packed) return;
  response.body = *std::move(packed);
  MarkCompressed(response);
}

// Prometheus names nodes as it likes, and neither the numbers nor the probes tell more than whoever
// reaches the port may know.
bool AnyNameWillDo(const Request& request, std::string_view path) {
  return request.beyond_loopback &&
         (path == "/metrics" || path == "/health" || path.starts_with("/-/"));
}

Response WrongName(std::string_view host) {
  return Refusal(421, "'" + std::string(host.substr(0, 100)) +
                          "' is not a name of this server; use its address (127.0.0.1 on the host "
                          "itself), or add the name to web.hosts");
}

// Who has not said who it is learns nothing, not even which paths there are.
std::optional<Response> Unauthenticated(const Request& request, const std::string& path,
                                        const RouterOptions& options) {
  const auto& open = options.open_paths;
  if (request.role != Role::kNone || std::find(open.begin(), open.end(), path) != open.end())
    return std::nullopt;
  Response response = Refusal(401, "this server wants a user and a password");
  response.headers.push_back({"WWW-Authenticate", "Basic realm=\"rankscope\", charset=\"UTF-8\""});
  return response;
}

std::optional<Response> Forbidden(const Request& request, Role least) {
  if (std::max(request.role, Role::kMetrics) >= least) return std::nullopt;  // kNone: an open path
  return Refusal(403, "this needs the role " + std::string(RoleName(least)) +
                          " and this client has " + std::string(RoleName(request.role)) +
                          "; see web.roles");
}

Response Dispatch(const Request& request, const State& state, const RouterOptions& options) {
  if (request.path.size() + request.query.size() > kMaxTargetBytes) {
    return Refusal(414,
                   "path and query have more than " + std::to_string(kMaxTargetBytes) + " bytes");
  }
  const Result<std::string> path = DecodePath(request.path);
  if (!path) return Refusal(400, path.error());
  if (auto refused = Unauthenticated(request, *path, options)) return *std::move(refused);
  const auto route = std::find_if(std::begin(kRoutes), std::end(kRoutes),
                                  [&](const Route& r) { return Leads(r, *path); });
  if (route == std::end(kRoutes)) {
    return Refusal(404, "no such path; / links to the paths that exist");
  }
  const std::string_view wrong = WrongHost(request, options.names);
  if (!wrong.empty() && !AnyNameWillDo(request, *path)) return WrongName(wrong);
  if (auto refused = Forbidden(request, route->least)) return *std::move(refused);
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (route->acts ? request.method != "POST" : !reads) {
    const std::string_view allowed = route->acts ? "POST" : "GET, HEAD";
    Response response = Refusal(405, "the methods that are answered here: " + std::string(allowed));
    response.headers.push_back({"Allow", std::string(allowed)});
    return response;
  }
  const Result<Parameters> parameters = ParseQuery(request.query);
  if (!parameters) return Refusal(400, parameters.error());
  Response response = route->answer(
      {request, *parameters, state, options, std::string_view(*path).substr(route->path.size())});
  Compress(request, response);
  response.headers.push_back(
      {"Vary", route->by_accept ? "Accept, Accept-Encoding" : "Accept-Encoding"});
  return response;
}

}  // namespace

Response Router::Handle(const Request& request, const State& state) const {
  Response response = Dispatch(request, state, options_);
  response.headers.push_back({"Cache-Control", "no-store"});
  response.headers.push_back({"X-Content-Type-Options", "nosniff"});
  return response;
}

}  // namespace rankscope::http
