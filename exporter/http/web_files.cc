// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/web_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace rankscope::http {
namespace {

// A configuration or a bundle of authorities: Debian's has 220 kB.
constexpr size_t kMaxFileBytes = size_t{1} << 20;

// Two readings between which it stays the same have read the same bytes.
using Mark = std::array<int64_t, 7>;

Mark MarkOf(const struct stat& stat) {
  return {static_cast<int64_t>(stat.st_dev),
          static_cast<int64_t>(stat.st_ino),
          stat.st_size,
          stat.st_mtim.tv_sec,
          stat.st_mtim.tv_nsec,
          stat.st_ctim.tv_sec,
          stat.st_ctim.tv_nsec};
}

Mark MarkNow(const std::string& path) {
  struct stat found {};
  return stat(path.c_str(), &found) == 0 ? MarkOf(found) : Mark{};
}

struct Watched {
  std::string path;
  Mark mark;  // all 0: it could not be read
};

class FileSet {
 public:
  Result<std::string> Read(const std::string& path) {
    // A pipe or a device in place of a file must not keep this waiting.
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat found {};
    if (fd < 0 || fstat(fd, &found) != 0) {
      const Error error{path + ": " + std::strerror(errno) +
                        "; the daemon's user must be able to read it"};
      if (fd >= 0) close(fd);
      watched_.push_back({path, {}});
      return error;
    }
    watched_.push_back({path, MarkOf(found)});
    std::string text(kMaxFileBytes + 1, '\0');
    size_t size = 0;
    ssize_t got = S_ISREG(found.st_mode) ? 1 : -1;
    while (got > 0 && size < text.size()) {
      got = read(fd, text.data() + size, text.size() - size);
      if (got > 0) size += static_cast<size_t>(got);
    }
    close(fd);
    if (got < 0) return Error{path + ": is not a regular file, or cannot be read"};
    if (size > kMaxFileBytes) return Error{path + ": has more than 1 MiB"};
    text.resize(size);
    return text;
  }

  bool HasChanged() const {
    return std::any_of(watched_.begin(), watched_.end(),
                       [](const Watched& one) { return MarkNow(one.path) != one.mark; });
  }

 private:
  std::vector<Watched> watched_;
};

Result<std::string> TextOf(const WebConfig::Pem& pem, FileSet& files) {
  if (pem.file.empty()) return pem.text;
  return files.Read(pem.file);
}

Result<std::shared_ptr<const Web>> ReadAll(const std::string& path, FileSet& files) {
  const Result<std::string> text = files.Read(path);
  if (!text) return Error{text.error()};
  WebConfigOutcome outcome = ParseWebConfig(*text, path);
  if (!outcome.problems.empty()) {
    std::string all;
    for (const std::string& problem : outcome.problems) all += (all.empty() ? "" : "\n") + problem;
    return Error{all};
  }
  auto web = std::make_shared<Web>();
  web->config = std::move(outcome.config);
  if (const auto& tls = web->config.tls) {
    const Result<std::string> cert = TextOf(tls->cert, files);
    const Result<std::string> key = TextOf(tls->key, files);
    const Result<std::string> client_ca = TextOf(tls->client_ca, files);
    for (const auto* one : {&cert, &key, &client_ca}) {
      if (!*one) return Error{one->error()};
    }
    auto context = TlsContext::Make(*tls, {*cert, *key, *client_ca});
    if (!context) return Error{path + ": tls_server_config: " + context.error()};
    web->tls = *std::move(context);
  }
  return std::shared_ptr<const Web>(std::move(web));
}

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

class Files final : public WebFiles {
 public:
  Files(std::string path, Tell tell) : path_(std::move(path)), tell_(std::move(tell)) {}
  ~Files() override {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
  }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  Status Start() {
    if (const Status read = ReadAgain(); !read) return read;
    thread_ = std::thread([this] { Work(); });
    return {};
  }

  std::shared_ptr<const Web> Current() const override {
    const std::lock_guard lock(mutex_);
    return current_;
  }

  metrics::ReloadStatus Reading() const override {
    const std::lock_guard lock(mutex_);
    return reading_;
  }

  void Look(std::function<void()> then) override {
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(std::move(then));
    }
    wake_.notify_one();
  }

 private:
  Status ReadAgain() {
    FileSet files;
    Result<std::shared_ptr<const Web>> web = ReadAll(path_, files);
    files_ = std::move(files);
    const std::lock_guard lock(mutex_);
    reading_.good = web.has_value();
    if (!web) return Error{web.error()};
    reading_.good_wall_seconds = WallSeconds();
    current_ = *std::move(web);
    return {};
  }

  void Work() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return ends_ || !asked_.empty(); });
      if (ends_) return;
      const auto asked = std::exchange(asked_, {});
      lock.unlock();
      if (files_.HasChanged()) tell_(ReadAgain());
      for (const auto& then : asked) then();
      lock.lock();
    }
  }

  const std::string path_;
  const Tell tell_;
  FileSet files_;  // of the last reading; of the thread, after Start
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::shared_ptr<const Web> current_;
  metrics::ReloadStatus reading_;
  std::vector<std::function<void()>> asked_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<WebFiles>> WebFiles::Open(std::string path, Tell tell) {
  auto files = std::make_unique<Files>(std::move(path), std::move(tell));
  if (const Status started = files->Start(); !started) return Error{started.error()};
  return std::unique_ptr<WebFiles>(std::move(files));
}

Result<std::shared_ptr<const Web>> ReadWebFiles(const std::string& path) {
  FileSet files;
  return ReadAll(path, files);
}

}  // namespace rankscope::http
