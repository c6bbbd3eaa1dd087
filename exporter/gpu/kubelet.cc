// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/gpu/kubelet.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "exporter/gpu/pod_resources.h"

namespace rankscope::collectors {
namespace {

constexpr Duration kAnswer = Seconds(5);
// 250 pods with all that they have take some 100 KiB.
constexpr size_t kMostBytes = size_t{8} << 20;

}  // namespace

Kubelet::Kubelet(std::string socket, Duration interval)
    : socket_(std::move(socket)), interval_(interval) {}

Kubelet::~Kubelet() {
  Stop();
}

Status Kubelet::Start(exporter::EventLoop& loop, Sink& sink) {
  loop_ = &loop;
  sink_ = &sink;
  if (socket_.empty()) {
    TellState(Availability::kNotApplicable, "switched off: gpu.pod_resources is empty");
    return {};
  }
  worker_ = std::make_unique<exporter::Worker>(loop);
  timer_ = loop.Every(interval_, [this] { LookLater(); });
  TellState(Availability::kNotApplicable, "no answer yet from the kubelet at " + socket_);
  LookLater();
  return {};
}

void Kubelet::Stop() {
  if (loop_ == nullptr) return;
  loop_->Cancel(std::exchange(timer_, 0));
  worker_.reset();
  published_.reset();
  loop_ = nullptr;
}

Kubelet::Look Kubelet::Ask(const std::string& socket) {
  if (access(socket.c_str(), F_OK) != 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      return {Availability::kNotApplicable, "no kubelet on this node: no " + socket, {}};
    return {Availability::kDenied, socket + ": " + std::strerror(errno), {}};
  }
  exporter::HttpRequest request;
  request.url = "http://localhost/v1.PodResourcesLister/List";
  request.connect_timeout = request.timeout = kAnswer;
  request.max_bytes = kMostBytes;
  request.http2 = true;
  request.options.unix_socket = socket;
  request.options.headers = {"TE: trailers"};
  const exporter::HttpAnswer answer =
      exporter::HttpPost(request, {"application/grpc", PodResourcesRequest()});
  const std::string name = "the kubelet at " + socket + " ";
  if (!answer.error.empty()) return {Availability::kDown, name + answer.error, {}};
  if (answer.grpc_status != "0")
    return {Availability::kDown, name + "answers with gRPC status " + answer.grpc_status, {}};
  std::optional<std::vector<GpuProfile>> pods = ReadPodResources(answer.body);
  if (!pods) return {Availability::kDown, name + "answers with what is no list of pods", {}};
  return {Availability::kUp, {}, std::move(*pods)};
}

void Kubelet::LookLater() {
  if (worker_->pending() > 0) return;  // the last answer is still under way
  const bool submitted = worker_->Submit(
      [this, socket = socket_]() -> std::function<void()> {
        return [this, look = Ask(socket)]() mutable { Apply(std::move(look)); };
      },
      {kAnswer.ns + Seconds(1).ns},
      [this] {
        Apply({Availability::kDown, "the kubelet at " + socket_ + " does not answer in time", {}});
      });
  if (!submitted) return;  // cannot be: nothing was pending
}

void Kubelet::Apply(Look look) {
  published_.reset();
  if (look.state == Availability::kUp)
    published_ = std::make_shared<const std::vector<GpuProfile>>(std::move(look.pods));
  TellState(look.state, std::move(look.reason));
}

}  // namespace rankscope::collectors
