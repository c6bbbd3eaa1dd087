// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/state.h"

#include <unordered_map>

#include "exporter/web/status_page.h"

namespace rankscope::http {

SharedPart StatusPages::Page(bool log_text) const {
  if (log_text) return whole_.Get([this] { return web::StatusPage(*published_); });
  return without_log_text_.Get([this] {
    metrics::Published published = *published_;
    // Only what the page shows is copied.
    for (const size_t place : web::ShownOnPage(published.jobs)) {
      std::shared_ptr<const JobStatus>& job = published.jobs[place];
      job = std::make_shared<const JobStatus>(WithoutLogText(*job));
    }
    return web::StatusPage(published);
  });
}

State::State(std::shared_ptr<const metrics::Published> published,
             std::shared_ptr<const Exposition> exposition, const State* before)
    : published_(std::move(published)),
      exposition_(exposition ? std::move(exposition) : std::make_shared<const Exposition>()),
      status_pages_(published_) {
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
