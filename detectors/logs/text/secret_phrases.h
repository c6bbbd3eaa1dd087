// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Secrets in headers, in commands and in words, where no '=' says which part is one. Each is given
// the place of its rule's literal. For the redactor; stateless, any thread.
#pragma once

#include <cstddef>
#include <string_view>

#include "detectors/logs/text/secret_span.h"

namespace rankscope::logs {

// Cookie: a=b; c=d, as a header, or as a pair in quotes. Without a '=' it is a word about cookies.
Span CookieSecret(std::string_view text, size_t at);

// curl -u user:password, mysql -pPASSWORD: the flag begins behind the blank at `at`.
Span CommandLineSecret(std::string_view text, size_t at);

// "secret key: wJalr...", "API key is 0123...": names of two words.
Span SpokenKey(std::string_view text, size_t at);

// "password hunter2", "password is hunter2", "Password for me: hunter2"; `i`: behind the name.
Span SpokenPassword(std::string_view text, size_t i);

}  // namespace rankscope::logs
