// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/stub_gpu/communicator.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ctime>

namespace stub_gpu {
namespace {

Meeting* Map(const std::string& name) {
  const int fd = shm_open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (ftruncate(fd, sizeof(Meeting)) == 0)
    memory = mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return memory == MAP_FAILED ? nullptr : static_cast<Meeting*>(memory);
}

void Pause() {
  const timespec time{0, 500'000};
  nanosleep(&time, nullptr);
}

// Never 0, and a colour below 0 stays below 0.
int64_t Pack(int colour, int key) {
  return colour < 0 ? -1 : (static_cast<int64_t>(colour) + 1) << 32 | static_cast<uint32_t>(key);
}

}  // namespace

Communicator::Communicator(const std::string& name, int rank, int ranks)
    : name_(name), rank_(rank), ranks_(ranks), meeting_(Map(name)) {
  if (meeting_ == nullptr) return;
  ++meeting_->joined;
  while (meeting_->joined < ranks) Pause();
  // The last one to know that all are here takes the name away; the memory stays.
  if (++meeting_->left == ranks) shm_unlink(name.c_str());
}

void Communicator::Reach(uint64_t sequence) {
  meeting_->reached[rank_].store(sequence, std::memory_order_release);
}

bool Communicator::Complete(uint64_t sequence) const {
  for (int rank = 0; rank < ranks_; ++rank) {
    if (meeting_->reached[rank].load(std::memory_order_acquire) < sequence) return false;
  }
  return true;
}

Communicator* Communicator::Split(int colour, int key) {
  const int split = splits_++;
  if (split >= kMaxSplits) return nullptr;
  std::atomic<int64_t>* said = meeting_->colour_and_key[split];
  const int64_t own = Pack(colour, key);
  said[rank_] = own;
  for (int rank = 0; rank < ranks_; ++rank) {
    while (said[rank] == 0) Pause();
  }
  if (colour < 0) return nullptr;
  int members = 0;
  int place = 0;
  for (int rank = 0; rank < ranks_; ++rank) {
    const int64_t other = said[rank];
    if (other < 0 || other >> 32 != own >> 32) continue;
    ++members;
    if (other < own || (other == own && rank < rank_)) ++place;
  }
  return new Communicator(name_ + "." + std::to_string(split) + "." + std::to_string(colour), place,
                          members);
}

}  // namespace stub_gpu
