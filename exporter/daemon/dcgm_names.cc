// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/dcgm_names.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "exporter/gpu/dcgm_page.h"
#include "exporter/gpu/kubelet.h"
#include "exporter/loop/http_client.h"

namespace rankscope::exporter {
namespace {

constexpr Duration kConnect = Seconds(1);
constexpr Duration kAnswer = Seconds(3);
constexpr char kProgram[] = "dcgm-exporter";

// In a pod with a network of its own it answers nowhere that the node's configuration names. Any
// user can give a program this name, so only root's counts, and that of whoever runs this one.
std::string FindExporter(const std::string& proc) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(proc.c_str()), closedir);
  if (folder == nullptr) return {};
  while (const dirent* const entry = readdir(folder.get())) {
    const std::string pid = entry->d_name;
    if (pid.find_first_not_of("0123456789") != pid.npos) continue;
    const std::string path = proc + "/" + pid;
    struct stat facts {};
    if (stat(path.c_str(), &facts) != 0 || (facts.st_uid != 0 && facts.st_uid != geteuid()))
      continue;
    std::string name;
    std::getline(std::ifstream(path + "/comm"), name);
    if (name == kProgram) return pid;
  }
  return {};
}

}  // namespace

DcgmNames DecideDcgmNames(const Config& config, const std::string& proc) {
  const std::string& wanted = config.metrics.dcgm_names;
  if (wanted != "auto") return {wanted == "true", false, "metrics.dcgm_names is " + wanted};
  const SourceSettings* const nvml = config.FindSource("nvml");
  if (nvml != nullptr && !nvml->enabled) return {false, false, "sources.nvml.enabled is false"};
  const std::string& url = config.gpu.dcgm_url;
  std::string reason = "gpu.dcgm_url is empty";
  if (!url.empty()) {
    HttpRequest request;
    request.url = url;
    request.accept = "text/plain;version=0.0.4";
    request.connect_timeout = kConnect;
    request.timeout = kAnswer;
    const HttpAnswer answer = HttpGet(request);
    using End = HttpAnswer::End;
    const collectors::DcgmPage page =
        answer.error.empty() ? collectors::ReadDcgmPage(answer.body) : collectors::DcgmPage();
    if (page.dcgm_samples + page.part_samples > 0)
      return {false, false, "dcgm-exporter answers at " + url + " and has them"};
    if (answer.end != End::kRefused && answer.end != End::kAnswered &&
        answer.end != End::kNotLoaded)
      return {false, false, url + " " + answer.error + ", so a dcgm-exporter may be there"};
    reason = "no dcgm-exporter answers at " + url;
  }
  if (const std::string pid = FindExporter(proc); !pid.empty())
    return {false, false, "a dcgm-exporter runs on this node, as process " + pid};
  return {true, true, reason};
}

KubeletAnswer AskKubelet(const Config& config) {
  const std::string& socket = config.gpu.pod_resources;
  if (socket.empty()) return {Availability::kNotApplicable, "gpu.pod_resources is empty"};
  collectors::Kubelet::Look look = collectors::Kubelet::Ask(socket);
  if (look.state != Availability::kUp) return {look.state, std::move(look.reason)};
  return {look.state,
          "pods of " + std::to_string(look.pods.size()) + " GPUs from the kubelet at " + socket};
}

}  // namespace rankscope::exporter
