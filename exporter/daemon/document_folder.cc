// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/document_folder.h"

#include <algorithm>
#include <utility>

#include "exporter/daemon/kept_file.h"

namespace rankscope::exporter {
namespace {

Status Apply(const std::string& directory, const std::vector<DocumentFolder::File>& files) {
  Status outcome;
  for (const DocumentFolder::File& file : files) {
    const std::string path = directory + '/' + file.name;
    Status status = file.content ? ReplaceFile(path, *file.content) : RemoveFile(path);
    if (outcome.ok()) outcome = std::move(status);
  }
  return outcome;
}

}  // namespace

DocumentFolder::DocumentFolder(EventLoop& loop, DiskThread& disk, Hooks hooks)
    : loop_(loop),
      disk_(disk),
      hooks_(std::move(hooks)),
      self_(std::make_shared<DocumentFolder*>(this)) {}

DocumentFolder::~DocumentFolder() {
  *self_ = nullptr;
  loop_.Cancel(retry_timer_);
}

void DocumentFolder::Changed(const std::string& key) {
  if (directory_.empty()) return;
  waiting_[key] = ++changes_;
  // While the disk refuses, one more waits with the others.
  if (retry_timer_ == 0) Write();
}

// Round and round, so that one document that is refused does not keep the others waiting.
DocumentFolder::Batch DocumentFolder::Next() {
  Batch batch;
  const size_t most = std::min(kMostAtOnce, waiting_.size());
  auto at = waiting_.upper_bound(last_tried_);
  while (batch.size() < most) {
    if (at == waiting_.end()) at = waiting_.begin();
    batch.push_back({at->first, at->second, hooks_.render(at->first)});
    last_tried_ = at->first;
    ++at;
  }
  return batch;
}

void DocumentFolder::Write() {
  if (in_flight_ || waiting_.empty()) return;
  auto batch = std::make_shared<const Batch>(Next());
  size_t bytes = 0;
  for (const Document& document : *batch) {
    for (const File& file : document.files) bytes += file.content ? file.content->size() : 0;
  }
  auto job = [batch, directory = directory_, self = self_]() -> std::function<void()> {
    std::vector<Status> outcomes;
    for (const Document& document : *batch) outcomes.push_back(Apply(directory, document.files));
    const Status synced = SyncFolder(directory);
    for (Status& outcome : outcomes) {
      if (outcome.ok()) outcome = synced;
    }
    return [batch, self, outcomes = std::move(outcomes)] {
      if (*self != nullptr) (*self)->OnWritten(*batch, outcomes);
    };
  };
  in_flight_ = disk_.Submit(std::move(job), bytes);
  if (!in_flight_) TryLater();
}

void DocumentFolder::OnWritten(const Batch& batch, const std::vector<Status>& outcomes) {
  in_flight_ = false;
  trouble_.clear();
  for (size_t i = 0; i < batch.size(); ++i) {
    const Document& document = batch[i];
    if (!outcomes[i].ok()) {
      ++errors_;
      trouble_ = outcomes[i].error();
      continue;
    }
    const auto found = waiting_.find(document.key);
    if (found == waiting_.end() || found->second != document.change) continue;
    waiting_.erase(found);
    if (hooks_.on_kept) hooks_.on_kept(document.key);
  }
  if (!trouble_.empty()) return TryLater();
  retry_ = kFirstRetry;
  Write();
}

void DocumentFolder::TryLater() {
  retry_timer_ = loop_.After(retry_, [this] {
    retry_timer_ = 0;
    Write();
  });
  retry_ = {std::min(2 * retry_.ns, kLongestRetry.ns)};
}

}  // namespace rankscope::exporter
