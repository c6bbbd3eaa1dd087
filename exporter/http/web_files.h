// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// web.config_file and the certificates that it names, as last read without a mistake. They are read
// again when one of them has changed, by a thread of its own: the listener's threads can open
// nothing, and a file system that hangs keeps nobody waiting. Any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "detectors/model/result.h"
#include "exporter/config/web_config.h"
#include "exporter/http/tls.h"
#include "exporter/metrics/published.h"

namespace rankscope::http {

// One reading; immutable.
struct Web {
  WebConfig config;
  std::shared_ptr<const TlsContext> tls;  // null: plain HTTP
};

class WebFiles {
 public:
  // Says what a later reading came to; called on the thread of the files.
  using Tell = std::function<void(const Status& reading)>;

  // An error is every mistake of the first reading, in lines.
  static Result<std::unique_ptr<WebFiles>> Open(std::string path, Tell tell);
  virtual ~WebFiles() = default;  // a look that runs is waited for

  // Never null.
  virtual std::shared_ptr<const Web> Current() const = 0;
  // Looks whether something has changed, reads it, and calls `then` on the thread of the files.
  virtual void Look(std::function<void()> then) = 0;
  virtual metrics::ReloadStatus Reading() const = 0;
};

// The same once, for those who only want to know the mistakes.
Result<std::shared_ptr<const Web>> ReadWebFiles(const std::string& path);

}  // namespace rankscope::http
