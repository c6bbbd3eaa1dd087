// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/stub_gpu/counts.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace stub_gpu {
namespace {

constexpr size_t kRows = 128;  // twice the functions of the largest library

struct Row {
  char name[56];
  std::atomic<uint64_t> count;
};
static_assert(sizeof(Row) == 64);

class Table {
 public:
  Table() {
    int fd = -1;
    if (const char* folder = std::getenv("STUB_GPU_COUNTS")) {
      char path[4096];
      std::snprintf(path, sizeof(path), "%s/%d.%s", folder, getpid(), STUB_GPU_LIBRARY);
      fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
      if (fd < 0 || ftruncate(fd, sizeof(Row) * kRows) != 0) {
        std::fprintf(stderr, "stub GPU: cannot count into %s: %s\n", path, std::strerror(errno));
        std::abort();
      }
    }
    void* memory = mmap(nullptr, sizeof(Row) * kRows, PROT_READ | PROT_WRITE,
                        fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) std::abort();
    rows_ = static_cast<Row*>(memory);
    if (fd >= 0) close(fd);
  }

  void Add(const char* name, uint64_t by) {
    for (size_t i = 0; i < kRows; ++i) {
      const char* known = names_[i].load(std::memory_order_acquire);
      if (known == nullptr) known = Claim(i, name);
      if (known != name) continue;
      rows_[i].count.fetch_add(by, std::memory_order_relaxed);
      return;
    }
    std::abort();
  }

 private:
  // Whose row it is then: another thread may have been quicker.
  const char* Claim(size_t i, const char* name) {
    const std::lock_guard lock(mutex_);
    if (const char* known = names_[i].load(std::memory_order_acquire)) return known;
    std::strncpy(rows_[i].name, name, sizeof(rows_[i].name) - 1);
    names_[i].store(name, std::memory_order_release);
    return name;
  }

  std::mutex mutex_;
  std::array<std::atomic<const char*>, kRows> names_{};
  Row* rows_ = nullptr;
};

}  // namespace

void Count(const char* name, uint64_t by) {
  static Table& table = *new Table;  // outlives every destructor that still calls
  table.Add(name, by);
}

}  // namespace stub_gpu
