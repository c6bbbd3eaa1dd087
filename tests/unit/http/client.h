// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A raw TCP client: sends any bytes, well-formed or not, and reads what comes back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rankscope::test {

class Client {
 public:
  // `receive_buffer`: bytes that the kernel takes in before they are read; 0 = as it likes.
  explicit Client(uint16_t port, int receive_buffer = 0);
  ~Client();
  Client(Client&& other) noexcept;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  Client& operator=(Client&&) = delete;

  // False when the other side has closed before everything was taken.
  bool Send(std::string_view bytes) const;

  // One answer: the head and as many bytes of body as its Content-Length says (none when
  // `head_only`); what arrived when the other side closes first or `timeout_ms` pass.
  std::string Answer(bool head_only = false, int timeout_ms = 10000);

  // Throws away at most `bytes` after a pause; how many.
  size_t ReadSome(size_t bytes, int pause_ms);

  // Whether the other side closes within `timeout_ms`.
  bool ClosedWithin(int timeout_ms);

 private:
  bool ReadMore(int timeout_ms);

  int fd_;
  std::string buffer_;
  bool closed_ = false;
};

}  // namespace rankscope::test
