// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/job_query.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>
#include <utility>

#include "detectors/document/verdict_words.h"
#include "detectors/families/family_names.h"
#include "detectors/model/percent_encode.h"
#include "exporter/web/job_times.h"

namespace rankscope::http {
namespace {

constexpr std::array<std::string_view, 4> kSeverities = {"critical", "warning", "info", "ok"};
constexpr std::array<std::string_view, 3> kStates = {"live", "provisional", "final"};

template <typename Names>
Status OneOf(std::string_view parameter, const std::string& value, const Names& names) {
  if (std::find(names.begin(), names.end(), value) != names.end()) return {};
  std::string error = std::string(parameter) + ": '" + value.substr(0, 60) + "' is none of";
  for (const std::string_view name : names) error.append(" ").append(name);
  return Error{std::move(error)};
}

Status TakeLimit(const std::string& value, size_t most, JobQuery& query) {
  const auto parsed = std::from_chars(value.data(), value.data() + value.size(), query.limit);
  if (parsed.ec == std::errc() && parsed.ptr == value.data() + value.size() && query.limit >= 1 &&
      query.limit <= most) {
    return {};
  }
  return Error{"limit: '" + value.substr(0, 60) + "' is not a number from 1 to " +
               std::to_string(most)};
}

Status TakeFamily(const std::string& value, JobQuery& query) {
  for (const families::FamilyName& row : families::FamilyNames()) {
    if (value == row.code || value == row.family) {
      query.family = row.code;
      return {};
    }
  }
  return Error{"family: '" + value.substr(0, 60) +
               "' is neither a family nor its code; `rankscope list families` has them"};
}

Status Take(const std::string& name, const std::string& value, size_t most, JobQuery& query) {
  if (name == "job_id" || name == "slurm_job_id") return {};  // one job: the caller's
  if (name == "limit") return TakeLimit(value, most, query);
  if (name == "after") {
    if (value.empty()) return Error{"after is empty; give a job id, or leave it out"};
    query.after = value;
    return {};
  }
  // A form sends the fields that are left empty, too.
  if (value.empty()) return {};
  if (name == "family") return TakeFamily(value, query);
  if (name == "since") {
    query.since_ns = ParseWallTime(value);
    if (query.since_ns) return {};
    return Error{"since: '" + value.substr(0, 60) +
                 "' is not a time; write seconds since 1970 or 2026-11-20T16:00:50Z"};
  }
  if (name == "severity") {
    query.severity = value;
    return OneOf(name, value, kSeverities);
  }
  if (name == "state") {
    query.state = value;
    return OneOf(name, value, kStates);
  }
  for (const auto& [known, field] :
       {std::pair("user", &query.user), {"partition", &query.partition}, {"node", &query.node}}) {
    if (name != known) continue;
    *field = value;
    return {};
  }
  return Error{"there is no parameter '" + name.substr(0, 60) +
               "'; those that are known: job_id slurm_job_id state severity user partition family "
               "node since limit after"};
}

bool IsOn(const JobStatus& job, const std::string& node) {
  const auto& nodes = job.verdict.nodes();
  return job.verdict.node() == node || std::find(nodes.begin(), nodes.end(), node) != nodes.end() ||
         std::any_of(job.ranks.begin(), job.ranks.end(),
                     [&node](const RankStatus& rank) { return rank.place.node == node; });
}

bool Matches(const JobStatus& job, const JobQuery& query) {
  const proto::Verdict& verdict = job.verdict;
  const auto is = [](const std::string& wanted, std::string_view value) {
    return wanted.empty() || wanted == value;
  };
  return is(query.state, Word(verdict.state())) &&
         is(query.severity, verdict.triage().severity()) && is(query.user, job.user) &&
         is(query.partition, job.facts.partition) && is(query.family, verdict.code()) &&
         (query.node.empty() || IsOn(job, query.node)) &&
         (!query.since_ns || verdict.updated_ns() >= *query.since_ns);
}

// What is not judged yet stands before what is well.
size_t Badness(const JobStatus& job) {
  const std::string& severity = job.verdict.triage().severity();
  if (severity == "ok") return kSeverities.size();
  const auto* const at = std::find(kSeverities.begin(), kSeverities.end() - 1, severity);
  return static_cast<size_t>(at - kSeverities.begin());
}

// The jobs of one id: a reused one names two, which stand together, as `after` could name neither
// alone.
struct Place {
  size_t badness = kSeverities.size() + 1;
  bool ended = true;
  double age = 0;  // of its beginning; unknown ones last
  std::vector<const JobDocument*> jobs;

  auto Order() const { return std::tuple(badness, ended, age); }
  const std::string& Id() const { return jobs.front()->job().job_id; }
};

void Add(const JobDocument& document, std::vector<Place>& places) {
  const JobStatus& job = document.job();
  if (places.empty() || places.back().Id() != job.job_id) places.emplace_back();
  Place& place = places.back();
  place.badness = std::min(place.badness, Badness(job));
  place.ended = place.ended && !job.running;
  const double began = web::BeganAt(job);
  if (began == began) place.age = std::min(place.age, -began);
  place.jobs.push_back(&document);
}

std::string NextQuery(const JobQuery& query, const std::string& last) {
  std::string text = "?limit=" + std::to_string(query.limit);
  for (const auto& [name, value] : {std::pair("state", &query.state),
                                    {"severity", &query.severity},
                                    {"user", &query.user},
                                    {"partition", &query.partition},
                                    {"family", &query.family},
                                    {"node", &query.node}}) {
    if (!value->empty()) text.append("&").append(name).append("=").append(PercentEncode(*value));
  }
  if (query.since_ns) text += "&since=" + std::to_string(*query.since_ns / 1'000'000'000);
  return text + "&after=" + PercentEncode(last);
}

}  // namespace

Result<JobQuery> JobQueryOf(const Parameters& parameters, size_t limit, size_t most) {
  JobQuery query;
  query.limit = limit;
  for (const auto& [name, value] : parameters) {
    const Status taken = Take(name, value, most, query);
    if (!taken) return Error{taken.error()};
  }
  return query;
}

std::optional<JobSlice> Select(const State& state, const JobQuery& query) {
  std::vector<Place> places;
  JobSlice slice;
  for (const auto& document : state.documents()) {
    if (!Matches(document->job(), query)) continue;
    Add(*document, places);
    ++slice.matching;
  }
  // Stable: jobs that began together stay in the order of their ids.
  std::stable_sort(places.begin(), places.end(),
                   [](const Place& a, const Place& b) { return a.Order() < b.Order(); });
  auto at = places.begin();
  if (!query.after.empty()) {
    at = std::find_if(places.begin(), places.end(),
                      [&query](const Place& place) { return place.Id() == query.after; });
    if (at == places.end()) return std::nullopt;
    ++at;
  }
  for (; at != places.end() && slice.jobs.size() < query.limit; ++at)
    slice.jobs.insert(slice.jobs.end(), at->jobs.begin(), at->jobs.end());
  if (at != places.end()) slice.next = NextQuery(query, slice.jobs.back()->job().job_id);
  return slice;
}

}  // namespace rankscope::http
