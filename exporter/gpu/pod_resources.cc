// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/gpu/pod_resources.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace rankscope::collectors {
namespace {

// Before each message of gRPC: whether it is compressed, and its length in four bytes.
constexpr size_t kPrefixBytes = 5;
// Of names of Kubernetes (253) and of devices.
constexpr size_t kMaxText = 253;

// Fields of a protobuf message, of which only those that have a length matter here: texts and
// messages. Numbers of k8s.io/kubelet's api.proto.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}

  // The next of them; false at the end, and where the bytes are no message.
  bool Next() {
    while (!rest_.empty()) {
      uint64_t key = 0, size = 0;
      if (!Varint(key)) return Fail();
      number_ = key >> 3;
      switch (key & 7) {
        case 0:
          if (!Varint(size)) return Fail();
          continue;
        case 1:
          if (!Skip(8)) return Fail();
          continue;
        case 5:
          if (!Skip(4)) return Fail();
          continue;
        case 2:
          if (!Varint(size) || size > rest_.size()) return Fail();
          text_ = rest_.substr(0, size);
          rest_.remove_prefix(size);
          return true;
        default:
          return Fail();
      }
    }
    return false;
  }
  uint64_t number() const { return number_; }
  std::string_view text() const { return text_; }
  bool good() const { return good_; }

 private:
  bool Fail() {
    good_ = false;
    rest_ = {};
    return false;
  }
  bool Skip(size_t bytes) {
    if (rest_.size() < bytes) return false;
    rest_.remove_prefix(bytes);
    return true;
  }
  bool Varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return true;
    }
    return false;
  }

  std::string_view rest_, text_;
  uint64_t number_ = 0;
  bool good_ = true;
};

// The id without the number that a GPU shared by turns has behind it ("GPU-7::2"); empty: no GPU.
std::string_view GpuOf(std::string_view resource, std::string_view id) {
  if (!resource.starts_with("nvidia.com/")) return {};
  id = id.substr(0, id.find("::"));
  const bool known = id.starts_with("GPU-") || id.starts_with("MIG-") || id.starts_with("nvidia");
  return known && id.size() <= kMaxText ? id : std::string_view();
}

class Reader {
 public:
  std::optional<std::vector<GpuProfile>> Read(std::string_view message) {
    Fields fields(message);
    while (fields.Next()) {
      if (fields.number() == 1) ReadPod(fields.text());
    }
    if (!fields.good() || !good_) return std::nullopt;
    return std::move(found_);
  }

 private:
  void ReadPod(std::string_view message) {
    GpuPod pod;
    std::vector<std::string_view> containers;
    Fields fields(message);
    while (fields.Next()) {
      if (fields.number() == 1) pod.pod = fields.text().substr(0, kMaxText);
      if (fields.number() == 2) pod.name_space = fields.text().substr(0, kMaxText);
      if (fields.number() == 3) containers.push_back(fields.text());
    }
    good_ = good_ && fields.good();
    for (const std::string_view container : containers) ReadContainer(container, pod);
  }

  void ReadContainer(std::string_view message, GpuPod pod) {
    std::vector<std::string_view> devices;
    Fields fields(message);
    while (fields.Next()) {
      if (fields.number() == 1) pod.container = fields.text().substr(0, kMaxText);
      if (fields.number() == 2) devices.push_back(fields.text());
    }
    good_ = good_ && fields.good();
    for (const std::string_view device : devices) ReadDevices(device, pod);
  }

  void ReadDevices(std::string_view message, const GpuPod& pod) {
    std::string_view resource;
    std::vector<std::string_view> ids;
    Fields fields(message);
    while (fields.Next()) {
      if (fields.number() == 1) resource = fields.text();
      if (fields.number() == 2) ids.push_back(fields.text());
    }
    good_ = good_ && fields.good();
    for (const std::string_view id : ids) {
      if (const std::string_view gpu = GpuOf(resource, id); !gpu.empty()) Add(gpu, pod);
    }
  }

  void Add(std::string_view gpu, const GpuPod& pod) {
    auto found = std::find_if(found_.begin(), found_.end(),
                              [gpu](const GpuProfile& known) { return known.uuid == gpu; });
    if (found == found_.end()) {
      if (found_.size() >= kMaxPodDevices) return;
      found = found_.insert(found, GpuProfile());
      found->uuid = gpu;
    }
    std::vector<GpuPod>& pods = found->pods;
    if (std::find(pods.begin(), pods.end(), pod) == pods.end() && pods.size() < kMaxPodDevices)
      pods.push_back(pod);
  }

  std::vector<GpuProfile> found_;
  bool good_ = true;
};

}  // namespace

std::string PodResourcesRequest() {
  return std::string(kPrefixBytes, '\0');
}

std::optional<std::vector<GpuProfile>> ReadPodResources(std::string_view answer) {
  if (answer.size() < kPrefixBytes || answer.front() != '\0') return std::nullopt;
  uint32_t size = 0;
  for (size_t i = 1; i < kPrefixBytes; ++i)
    size = size << 8 | static_cast<unsigned char>(answer[i]);
  answer.remove_prefix(kPrefixBytes);
  if (answer.size() != size) return std::nullopt;
  return Reader().Read(answer);
}

}  // namespace rankscope::collectors
