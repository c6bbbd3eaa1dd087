// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Ends of an array's tasks wait for one another, so that the array is told as one message: until
// all of its tasks have ended here, or none runs on this node and nothing has happened for a
// minute, and never longer than the configuration says. Bounded. Pure; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detectors/model/time.h"

namespace rankscope::exporter::notify {

class ArrayRoom {
 public:
  static constexpr Duration kQuiet = Seconds(60);
  static constexpr Duration kForget = Seconds(3600);  // an array of which nothing is heard
  static constexpr size_t kMostHeld = 1024;           // ends of all arrays
  static constexpr size_t kMostArrays = 512;
  static constexpr size_t kMostTasks = 4096;  // that are counted of one array

  // An array's number is its user's word: what two users say of one are two arrays.
  struct Task {
    std::string array;
    int64_t uid = -1;
    std::string job_id;
    int32_t tasks = 0;  // of the whole array; 0 = not known
  };

  // `most`: of the wait; zero: nothing waits.
  explicit ArrayRoom(Duration most) : most_(most) {}
  void SetMost(Duration most) { most_ = most; }

  void Runs(const Task& task, int64_t now_ns);
  // False: it does not wait, and is to be told at once.
  bool Ends(const Task& task, bool completed, int64_t now_ns);
  // It has left without an end.
  void Gone(std::string_view job_id);

  // What is to be told together now.
  struct Told {
    std::vector<std::string> job_ids;
    int32_t tasks = 0, completed = 0, running = 0;
  };
  std::vector<Told> TakeDue(int64_t now_ns);
  // All that waits.
  std::vector<Told> TakeAll();

  size_t held() const { return held_; }

 private:
  struct Array {
    std::set<std::string, std::less<>> running, ended;
    std::vector<std::string> waiting;
    int32_t tasks = 0, completed = 0;
    int64_t first_ns = 0;  // of those that wait
    int64_t last_ns = 0;   // that something was heard
  };
  using Arrays = std::map<std::pair<int64_t, std::string>, Array>;

  Array* Find(const Task& task, int64_t now_ns);
  bool IsDue(const Array& array, int64_t now_ns) const;
  Told Take(Array& array);

  Duration most_;
  Arrays arrays_;
  size_t held_ = 0;
};

}  // namespace rankscope::exporter::notify
