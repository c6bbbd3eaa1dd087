// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/notify_spool.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "exporter/daemon/kept_file.h"

namespace rankscope::exporter {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMessage = ".msg", kTold = ".told";
constexpr uintmax_t kMostFile = 256 << 10;

struct File {
  std::string name;
  uintmax_t size = 0;
};

std::vector<File> FilesOf(const std::string& folder, std::string_view suffix) {
  std::vector<File> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const fs::directory_entry& entry = *at;
    std::error_code ignored;
    if (entry.path().extension() == suffix && entry.is_regular_file(ignored))
      files.push_back({entry.path().filename().string(), entry.file_size(ignored)});
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.name < b.name; });
  return files;
}

template <class Message>
std::optional<Message> ReadMessage(const std::string& path, uintmax_t size) {
  if (size > kMostFile) return std::nullopt;
  std::ifstream stream(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(stream), {});
  const std::optional<std::string_view> sealed = OpenMessage(bytes);
  Message message;
  if (!sealed || !message.ParseFromArray(sealed->data(), static_cast<int>(sealed->size())))
    return std::nullopt;
  return message;
}

}  // namespace

Status NotifySpool::Open() const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (!error) fs::permissions(folder_, fs::perms::owner_all, error);
  return error ? Status(Error{folder_ + ": " + error.message()}) : Status();
}

std::string NotifySpool::FileOf(const proto::Notification& notification) {
  return FileNameOf(notification.id()) + std::string(kMessage);
}

std::vector<NotifySpool::Waiting> NotifySpool::Messages(size_t& damaged) const {
  std::vector<Waiting> waiting;
  for (const File& file : FilesOf(folder_, kMessage)) {
    const std::string path = folder_ + '/' + file.name;
    auto message = ReadMessage<proto::SpooledNotification>(path, file.size);
    if (message && FileOf(message->notification()) == file.name) {
      waiting.push_back({file.name, *std::move(message)});
      continue;
    }
    ++damaged;
    if (!RemoveFile(path).ok()) continue;
  }
  std::stable_sort(waiting.begin(), waiting.end(), [](const Waiting& a, const Waiting& b) {
    return a.message.spooled_ns() < b.message.spooled_ns();
  });
  return waiting;
}

std::vector<proto::ToldJob> NotifySpool::Told(int64_t wall_ns, int64_t keep_ns) const {
  std::vector<proto::ToldJob> told;
  for (const File& file : FilesOf(folder_, kTold)) {
    const std::string path = folder_ + '/' + file.name;
    auto job = ReadMessage<proto::ToldJob>(path, file.size);
    const bool current = job && job->told_ns() + keep_ns > wall_ns && told.size() < kMostTold;
    if (current) {
      told.push_back(*std::move(job));
    } else if (const Status removed = RemoveFile(path); !removed.ok()) {
      continue;
    }
  }
  return told;
}

Result<bool> NotifySpool::Put(const proto::SpooledNotification& message,
                              const proto::ToldJob& told) const {
  const std::vector<File> files = FilesOf(folder_, kMessage);
  uintmax_t bytes = message.ByteSizeLong();
  for (const File& file : files) bytes += file.size;
  if (files.size() >= kMostMessages || bytes > kMostBytes) return false;
  // The message first: what is told twice has the same id, and what was never told is lost.
  const std::string path = folder_ + '/' + FileOf(message.notification());
  if (Status written = ReplaceFile(path, SealMessage(message.SerializeAsString())); !written.ok())
    return Error{written.error()};
  const std::string name = FileNameOf(told.job_id()) + std::string(kTold);
  if (Status written = ReplaceFile(folder_ + '/' + name, SealMessage(told.SerializeAsString()));
      !written.ok())
    return Error{written.error()};
  if (Status synced = SyncFolder(folder_); !synced.ok()) return Error{synced.error()};
  return true;
}

Status NotifySpool::Delivered(const std::string& file, const proto::Delivery& delivery) const {
  const std::string path = folder_ + '/' + file;
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (error) return {};  // it has gone already
  auto message = ReadMessage<proto::SpooledNotification>(path, size);
  if (!message) return RemoveFile(path);
  auto& left = *message->mutable_deliveries();
  for (int i = left.size() - 1; i >= 0; --i) {
    if (left.Get(i).channel() == delivery.channel() && left.Get(i).address() == delivery.address())
      left.DeleteSubrange(i, 1);
  }
  if (left.empty()) return RemoveFile(path);
  return ReplaceFile(path, SealMessage(message->SerializeAsString()));
}

}  // namespace rankscope::exporter
