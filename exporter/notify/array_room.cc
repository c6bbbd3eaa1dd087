// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/notify/array_room.h"

#include <algorithm>

namespace rankscope::exporter::notify {

// Null: it is no task of an array, or there are too many arrays.
ArrayRoom::Array* ArrayRoom::Find(const Task& task, int64_t now_ns) {
  if (task.array.empty() || most_.ns <= 0) return nullptr;
  const std::pair key{task.uid, task.array};
  if (!arrays_.contains(key) && arrays_.size() >= kMostArrays) {
    // The one that was silent longest, of those that hold nothing.
    auto oldest = arrays_.end();
    for (auto at = arrays_.begin(); at != arrays_.end(); ++at) {
      if (at->second.waiting.empty() &&
          (oldest == arrays_.end() || at->second.last_ns < oldest->second.last_ns))
        oldest = at;
    }
    if (oldest == arrays_.end()) return nullptr;
    arrays_.erase(oldest);
  }
  Array& array = arrays_[key];
  array.tasks = std::max(array.tasks, task.tasks);
  array.last_ns = now_ns;
  return &array;
}

void ArrayRoom::Runs(const Task& task, int64_t now_ns) {
  Array* const array = Find(task, now_ns);
  if (array == nullptr) return;
  if (array->running.size() < kMostTasks) array->running.insert(task.job_id);
}

bool ArrayRoom::Ends(const Task& task, bool completed, int64_t now_ns) {
  Array* const array = Find(task, now_ns);
  if (array == nullptr) return false;
  array->running.erase(task.job_id);
  if (array->ended.size() < kMostTasks && array->ended.insert(task.job_id).second)
    array->completed += completed ? 1 : 0;
  if (array->tasks == 1 || held_ >= kMostHeld) return false;
  if (array->waiting.empty()) array->first_ns = now_ns;
  array->waiting.push_back(task.job_id);
  ++held_;
  return true;
}

void ArrayRoom::Gone(std::string_view job_id) {
  for (auto& [key, array] : arrays_) {
    if (const auto at = array.running.find(job_id); at != array.running.end())
      array.running.erase(at);
  }
}

bool ArrayRoom::IsDue(const Array& array, int64_t now_ns) const {
  if (array.waiting.empty()) return false;
  if (array.tasks > 0 && array.ended.size() >= static_cast<size_t>(array.tasks)) return true;
  if (now_ns - array.first_ns >= most_.ns || now_ns < array.first_ns) return true;
  return array.running.empty() && now_ns - array.last_ns >= kQuiet.ns;
}

ArrayRoom::Told ArrayRoom::Take(Array& array) {
  held_ -= array.waiting.size();
  return {std::exchange(array.waiting, {}), array.tasks, array.completed,
          static_cast<int32_t>(array.running.size())};
}

std::vector<ArrayRoom::Told> ArrayRoom::TakeDue(int64_t now_ns) {
  std::vector<Told> told;
  for (auto at = arrays_.begin(); at != arrays_.end();) {
    Array& array = at->second;
    if (IsDue(array, now_ns) || (held_ >= kMostHeld && !array.waiting.empty()))
      told.push_back(Take(array));
    const bool old = array.waiting.empty() && now_ns - array.last_ns > kForget.ns;
    at = old ? arrays_.erase(at) : std::next(at);
  }
  return told;
}

std::vector<ArrayRoom::Told> ArrayRoom::TakeAll() {
  std::vector<Told> told;
  for (auto& [key, array] : arrays_) {
    if (!array.waiting.empty()) told.push_back(Take(array));
  }
  return told;
}

}  // namespace rankscope::exporter::notify
