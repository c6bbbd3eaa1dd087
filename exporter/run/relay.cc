// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/relay.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include "exporter/run/clock.h"
#include "exporter/run/write_all.h"

namespace rankscope::run {
namespace {

// A quarter of the pipe: while one block is written the command can fill the others.
constexpr size_t kBlock = 256 * 1024;
// How often a stream without a reader asks whether it has been released.
constexpr int kReleaseMs = 20;

}  // namespace

// How much of it is in a log.
size_t Tap::Log(std::string_view bytes) {
  const Written first = WriteAll(log_fd_, bytes);
  if (first.error == 0) return bytes.size();
  const bool was_elsewhere = !elsewhere_;
  if (!was_elsewhere) other_log_ = std::exchange(elsewhere_, {})(first.error);
  if (was_elsewhere || !other_log_) {
    log_error_.store(first.error, std::memory_order_relaxed);
    return first.written;
  }
  log_fd_ = other_log_.get();
  return first.written + Log(bytes.substr(first.written));
}

void Tap::Take(int stream, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (log_fd_ >= 0) {
    const size_t logged = log_error() == 0 ? Log(bytes) : 0;
    lost_bytes_.fetch_add(static_cast<int64_t>(bytes.size() - logged), std::memory_order_relaxed);
  }
  try {
    queue_.PushBytes(stream, bytes, MonotonicNow());
  } catch (const std::bad_alloc&) {
    // The log has it; the observer hears that text is missing where memory is there again.
  }
}

Relay::Relay(int stream, int out_fd, Tap& tap, Hooks hooks, std::latch& begin)
    : stream_(stream),
      out_fd_(out_fd),
      tap_(tap),
      hooks_(std::move(hooks)),
      stop_(eventfd(0, EFD_CLOEXEC)),
      begin_(begin) {
  if (!stop_) return;
  try {
    thread_ = std::thread([this] {
      begin_.wait();
      if (in_) Run();
    });
  } catch (const std::system_error&) {
  }
}

Relay::~Relay() {
  Stop();
}

void Relay::Stop() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t told = write(stop_.get(), &one, sizeof one);
  thread_.join();
}

// False: stop.
bool Relay::WaitReadable() {
  while (true) {
    std::array<pollfd, 2> polled = {pollfd{in_.get(), POLLIN, 0}, pollfd{stop_.get(), POLLIN, 0}};
    if (poll(polled.data(), polled.size(), -1) < 0) continue;
    if (polled[1].revents != 0) return false;
    if (polled[0].revents != 0) return true;
  }
}

void Relay::Run() {
  const auto block = std::make_unique_for_overwrite<char[]>(kBlock);
  while (WaitReadable()) {
    const ssize_t size = read(in_.get(), block.get(), kBlock);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (size <= 0) {
      ended_.store(true, std::memory_order_release);
      break;
    }
    const std::string_view bytes(block.get(), static_cast<size_t>(size));
    tap_.Take(stream_, bytes);
    const Written result = WriteAll(out_fd_, bytes);
    if (result.error == EPIPE) {
      Drain(block.get());
      ended_.store(true, std::memory_order_release);
      break;
    }
    unwritten_bytes_.fetch_add(static_cast<int64_t>(bytes.size() - result.written),
                               std::memory_order_relaxed);
  }
  in_.Reset();
  hooks_.done(stream_);
}

// Nobody reads our output any more. Closing the pipe gives the command the SIGPIPE or EPIPE that it
// would have had.
void Relay::Drain(char* block) {
  hooks_.release(stream_);
  while (!hooks_.released(stream_)) {
    std::array<pollfd, 2> polled = {pollfd{in_.get(), POLLIN, 0}, pollfd{stop_.get(), POLLIN, 0}};
    poll(polled.data(), polled.size(), kReleaseMs);
    if (polled[1].revents != 0) return;
    if (polled[0].revents == 0) continue;
    const ssize_t size = read(in_.get(), block, kBlock);
    if (size == 0) return;
    if (size > 0) tap_.Take(stream_, {block, static_cast<size_t>(size)});
  }
}

}  // namespace rankscope::run
