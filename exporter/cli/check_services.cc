// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <sys/timex.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/cli/check_finding.h"
#include "exporter/daemon/dcgm_names.h"
#include "exporter/loop/command.h"
#include "exporter/loop/http_client.h"
#include "exporter/slurm/commands.h"

namespace rankscope::cli {
namespace {

constexpr Duration kSlurmPatience = Seconds(5);
constexpr Duration kHttpPatience = Seconds(3);
constexpr Duration kClockPatience = Seconds(2);
// Above it, the order of what two nodes saw is not known (decisions are made on seconds).
constexpr double kClockLimit = 0.5;

exporter::HttpAnswer Ask(const std::string& url) {
  exporter::HttpRequest request;
  request.url = url;
  request.connect_timeout = kHttpPatience;
  request.timeout = kHttpPatience;
  return exporter::HttpGet(request);
}

std::string WithoutSlash(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

// The first line, without what would break the table.
std::string FirstLine(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of("\n "), text.size());
  text.remove_prefix(begin);
  return std::string(text.substr(0, text.find('\n')));
}

// `scontrol ping`: no job and no node is asked about.
Finding PingSlurm(const exporter::Config::Slurm& slurm, Finding finding) {
  const std::string scontrol = exporter::FindProgram("scontrol", exporter::slurm::CommandFolders());
  exporter::CommandLine command;
  command.argv = {scontrol, "ping"};
  if (!slurm.conf.empty()) command.environment = {"SLURM_CONF=" + slurm.conf};
  command.deadline = kSlurmPatience;
  const exporter::CommandOutcome outcome = exporter::RunCommand(command);
  if (outcome.output.find(" is UP") != std::string::npos) {
    finding.state = "yes";
    finding.text = FirstLine(outcome.output) + "; " + finding.text;
    return finding;
  }
  finding.state = "no";
  const bool late = outcome.end == exporter::CommandOutcome::End::kLate;
  const std::string said = FirstLine(outcome.output + "\n" + outcome.complaint);
  finding.text = scontrol + " ping: " + (late ? "no answer within 5 s" : said);
  finding.needs =
      "a slurmctld that answers; slurm.conf, if Slurm's configuration is not where its "
      "commands look; slurm.role: off, where there is no Slurm";
  return finding;
}

Finding ReachSlurm(const std::string& url, const std::string& key, Finding finding) {
  const exporter::HttpAnswer answer = Ask(url);
  // slurmrestd answers 401 without a token, which is its own check.
  const bool there = answer.end == exporter::HttpAnswer::End::kAnswered && answer.status < 500;
  finding.state = there ? "yes" : "no";
  if (!there) {
    finding.text = url + ": " + answer.error;
    finding.needs = "a service that answers there; see " + key;
  }
  return finding;
}

}  // namespace

Finding CheckSlurm(const exporter::Config& config) {
  const exporter::Config::Slurm& slurm = config.slurm;
  Finding finding{"slurm", "off", "slurm.role is off", "slurm", true};
  if (slurm.role == "off") return finding;
  const bool controller = slurm.role == "controller";
  exporter::slurm::RestService rest;
  if (controller) rest.url = slurm.restd_url;
  exporter::slurm::Commands commands(exporter::slurm::CommandFolders(), {}, rest);
  const Status found = commands.Find();
  if (controller) {
    finding.text = "role controller: polls all jobs and nodes every 30 s or more; serves /events";
    if (!rest.url.empty())
      return ReachSlurm(WithoutSlash(rest.url) + "/ping", "slurm.restd_url", finding);
  } else if (!slurm.controller_url.empty()) {
    finding.text = "events of the node's jobs from " + slurm.controller_url;
    return ReachSlurm(WithoutSlash(slurm.controller_url) + "/-/ready", "slurm.controller_url",
                      finding);
  } else {
    finding.text = "asked once when a job begins and once when a job ends badly";
  }
  if (found) return PingSlurm(slurm, finding);
  finding.state = controller ? "no" : "n/a";
  finding.text = found.error();
  if (!controller) finding.text += "; jobs and ranks come from cgroups and SLURM_*";
  return finding;
}

Finding CheckFleet(const exporter::Config& config) {
  const std::string& url = config.fleet.prometheus;
  if (url.empty())
    return {"fleet", "off", "fleet.prometheus is empty; verdicts cover this node only"};
  const exporter::HttpAnswer answer = Ask(WithoutSlash(url) + "/-/ready");
  const bool ready = answer.end == exporter::HttpAnswer::End::kAnswered && answer.status == 200;
  Finding finding{"fleet", ready ? "partly" : "no", ""};
  finding.text = ready ? url + " is ready, but this build queries no Prometheus"
                       : url + "/-/ready: " + answer.error;
  finding.wanted = !ready;
  finding.lost = "what other nodes know of a job; verdicts cover this node only";
  finding.needs = ready ? "nothing; a later version queries it" : "a Prometheus that answers there";
  return finding;
}

Finding CheckDcgm(const exporter::Config& config) {
  const std::string& url = config.gpu.dcgm_url;
  if (url.empty()) return {"dcgm", "off", "gpu.dcgm_url is empty"};
  const exporter::HttpAnswer answer = Ask(url);
  if (answer.end == exporter::HttpAnswer::End::kRefused)
    return {"dcgm", "n/a", "no dcgm-exporter at " + url, "dcgm", true};
  if (answer.error.empty()) return {"dcgm", "yes", "dcgm-exporter at " + url, "dcgm", true};
  return {"dcgm", "no", url + ": " + answer.error, "dcgm", true};
}

Finding CheckKubelet(const exporter::Config& config) {
  const exporter::KubeletAnswer answer = exporter::AskKubelet(config);
  const bool none = answer.state == Availability::kNotApplicable;
  const char* const state = answer.state == Availability::kUp ? "yes" : none ? "n/a" : "no";
  return {"kubelet", config.gpu.pod_resources.empty() ? "off" : state, answer.text};
}

Finding CheckDcgmNames(const exporter::Config& config) {
  const exporter::DcgmNames names = exporter::DecideDcgmNames(config);
  if (!names.shown) return {"dcgm_names", "off", names.reason};
  return {"dcgm_names", "yes", "GPU metrics also as DCGM_FI_*: " + names.reason};
}

namespace {

// Seconds between this clock and its server's, by chrony; negative: nobody knows.
double ChronyOffset() {
  const std::string chronyc = exporter::FindProgram("chronyc", {"/usr/bin", "/usr/sbin"});
  if (chronyc.empty()) return -1;
  exporter::CommandLine command;
  command.argv = {chronyc, "-n", "-c", "tracking"};
  command.deadline = kClockPatience;
  const exporter::CommandOutcome outcome = exporter::RunCommand(command);
  std::string_view text = outcome.output;
  // Reference, name, stratum, time, offset.
  for (int column = 0; column < 4; ++column) {
    const size_t comma = text.find(',');
    if (comma == std::string_view::npos) return -1;
    text.remove_prefix(comma + 1);
  }
  double offset = -1;
  std::from_chars(text.data(), text.data() + text.size(), offset);
  return std::abs(offset);
}

}  // namespace

Finding CheckClock() {
  timex state{};
  const int kept = adjtimex(&state);
  const double most = static_cast<double>(state.maxerror) * 1e-6;
  Finding finding{"clock", "yes", ""};
  std::array<char, 160> text{};
  const double offset = ChronyOffset();
  if (offset >= 0) {
    std::snprintf(text.data(), text.size(), "%.6f s from its server, by chrony", offset);
  } else if (kept >= 0 && kept != TIME_ERROR && (state.status & STA_UNSYNC) == 0) {
    std::snprintf(text.data(), text.size(), "synchronised; at most %.3f s off, by the kernel",
                  most);
  } else {
    std::snprintf(text.data(), text.size(), "the kernel's clock is not synchronised");
    finding.state = "no";
  }
  finding.text = text.data();
  if (offset > kClockLimit) finding.state = "partly";
  finding.lost = "the order of what different nodes saw";
  finding.needs = "chrony or systemd-timesyncd, with a server that answers";
  return finding;
}

}  // namespace rankscope::cli
