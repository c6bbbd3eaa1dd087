// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/attach/tracked_map.h"

#include <bpf/bpf.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "bpf/events/common.h"

namespace rankscope::probes {

TrackedMap::TrackedMap(std::shared_ptr<collectors::ProcessTable> table)
    : table_(std::move(table)) {}

TrackedMap::~TrackedMap() {
  if (fd_ < 0) return;
  table_->set_on_change({});
  close(fd_);
}

Result<int> TrackedMap::Open() {
  if (fd_ >= 0) return fd_;
  fd_ = bpf_map_create(BPF_MAP_TYPE_HASH, "rs_tracked", sizeof(uint32_t), sizeof(uint64_t),
                       RS_TRACKED_MAX, nullptr);
  if (fd_ < 0) {
    return Error{std::string("cannot create a BPF map: ") + std::strerror(errno) +
                 "; `rankscope check` reports what this kernel supports"};
  }
  for (const auto& [pid, process] : table_->processes()) Track(pid);
  table_->set_on_change([this](const ProcessKey& key, bool tracked) {
    if (tracked) {
      Track(key.pid);
    } else {
      for (const auto& [owner, on_gone] : on_gone_) on_gone(key);
      Untrack(key);
    }
  });
  return fd_;
}

void TrackedMap::Track(int32_t pid) {
  const uint32_t key = static_cast<uint32_t>(pid);
  const uint64_t any = 0;
  // Who is there already has its start, which tells it from a later owner of the pid.
  bpf_map_update_elem(fd_, &key, &any, BPF_NOEXIST);
}

void TrackedMap::Untrack(const ProcessKey& key) {
  const uint32_t pid = static_cast<uint32_t>(key.pid);
  uint64_t known = 0;
  if (bpf_map_lookup_elem(fd_, &pid, &known) != 0) return;
  if (known != 0 && static_cast<int64_t>(known / kNsPerTick) != key.start_ticks) return;
  bpf_map_delete_elem(fd_, &pid);
}

void TrackedMap::set_on_gone(const void* owner, OnGone on_gone) {
  if (on_gone) {
    on_gone_[owner] = std::move(on_gone);
  } else {
    on_gone_.erase(owner);
  }
}

void TrackedMap::Resync() {
  std::vector<uint32_t> strangers;
  uint32_t pid = 0;
  for (bool more = bpf_map_get_next_key(fd_, nullptr, &pid) == 0; more;
       more = bpf_map_get_next_key(fd_, &pid, &pid) == 0) {
    if (table_->Find(static_cast<int32_t>(pid)) == nullptr) strangers.push_back(pid);
  }
  for (const uint32_t stranger : strangers) bpf_map_delete_elem(fd_, &stranger);
}

}  // namespace rankscope::probes
