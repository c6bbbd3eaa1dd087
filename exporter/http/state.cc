// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/state.h"

#include <unordered_map>

namespace rankscope::http {

State::State(std::shared_ptr<const metrics::Published> published,
             std::shared_ptr<const Exposition> exposition, const State* before)
    : published_(std::move(published)),
      exposition_(exposition ? std::move(exposition) : std::make_shared<const Exposition>()) {
  std::unordered_map<const JobStatus*, const std::shared_ptr<const JobDocument>*> known;
  if (before != nullptr) {
    for (const auto& document : before->documents_) known[&document->job()] = &document;
  }
  documents_.reserve(published_->jobs.size());
  for (const auto& job : published_->jobs) {
    const auto same = known.find(job.get());
    documents_.push_back(same == known.end() ? std::make_shared<const JobDocument>(job)
                                             : *same->second);
  }
}

}  // namespace rankscope::http
