// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/config/web_roles.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "exporter/http/router.h"
#include "tests/unit/metrics/published_states.h"

namespace rankscope::http {
namespace {

TEST(ParseRole, ReadsUsersAndNamesOfCertificates) {
  const auto user = ParseRole("user:prometheus=metrics");
  ASSERT_TRUE(user);
  EXPECT_TRUE(user->of_user);
  EXPECT_EQ(user->name, "prometheus");
  EXPECT_EQ(user->role, Role::kMetrics);
  const auto uri = ParseRole("san:spiffe://a/b?c=d=log");
  ASSERT_TRUE(uri);
  EXPECT_FALSE(uri->of_user);
  EXPECT_EQ(uri->name, "spiffe://a/b?c=d");
  EXPECT_EQ(uri->role, Role::kLog);
  for (const char* bad : {"", "prometheus=metrics", "user:=log", "user:a", "user:a=none",
                          "user:a=", "user:a=Log", "group:a=log", "san:=verdict"}) {
    EXPECT_FALSE(ParseRole(bad)) << bad;
  }
}

TEST(RoleOf, TheUsersRowGoesFirstAndTheLeastIsForTheUnnamed) {
  const std::vector<RoleRow> rows = {{true, "ann", Role::kVerdict},
                                     {false, "a.example", Role::kMetrics},
                                     {false, "b.example", Role::kLog}};
  EXPECT_EQ(RoleOf({}, "anybody", {}), Role::kLog) << "as other exporters do";
  EXPECT_EQ(RoleOf(rows, "ann", {"b.example"}), Role::kVerdict);
  EXPECT_EQ(RoleOf(rows, "bob", {}), Role::kMetrics);
  EXPECT_EQ(RoleOf(rows, "bob", {"a.example", "b.example"}), Role::kLog);
  EXPECT_EQ(RoleOf(rows, "", {"b.example"}), Role::kLog);
  EXPECT_EQ(RoleOf(rows, "", {"c.example"}), Role::kMetrics);
  // A name of a certificate is no user, nor the other way round.
  EXPECT_EQ(RoleOf(rows, "b.example", {}), Role::kMetrics);
  EXPECT_EQ(RoleOf(rows, "", {"ann"}), Role::kMetrics);
}

TEST(Router, ARoleOpensItsPathsAndNoMore) {
  const State state(
      std::make_shared<const metrics::Published>(test::OnNode({test::HealthyJob("8841")})), nullptr,
      nullptr);
  Router router({.open_paths = {"/-/healthy"}});
  const auto ask = [&](const std::string& target, Role role) {
    Request request;
    request.method = "GET";
    request.path = target.substr(0, target.find('?'));
    if (request.path != target) request.query = target.substr(request.path.size() + 1);
    request.role = role;
    return router.Handle(request, state);
  };
  const auto status = [&](const char* path, Role role) { return ask(path, role).status; };
  for (const char* path : {"/metrics", "/-/ready", "/health"}) {
    EXPECT_EQ(status(path, Role::kNone), 401) << path;
    EXPECT_EQ(status(path, Role::kMetrics), 200) << path;
  }
  for (const char* path : {"/", "/verdict", "/verdict?job_id=8841", "/evidence?job_id=8841",
                           "/events?job_id=8841", "/digest?job_id=8841"}) {
    EXPECT_EQ(status(path, Role::kNone), 401) << path;
    EXPECT_EQ(status(path, Role::kMetrics), 403) << path;
    EXPECT_EQ(status(path, Role::kVerdict), 200) << path;
    EXPECT_EQ(status(path, Role::kLog), 200) << path;
  }
  EXPECT_EQ(status("/-/healthy", Role::kNone), 200) << "open";
  EXPECT_EQ(status("/-/healthy/", Role::kNone), 401);
  // Who has not said who it is does not learn which paths there are.
  EXPECT_EQ(status("/nothing", Role::kNone), 401);
  EXPECT_EQ(status("/nothing", Role::kMetrics), 404);
  EXPECT_TRUE(ask("/verdict", Role::kNone).HeaderValue("WWW-Authenticate").starts_with("Basic "));
  // An open path gives its own page, and no role.
  router = Router({.open_paths = {"/metrics"}});
  EXPECT_EQ(status("/metrics", Role::kNone), 200);
  EXPECT_EQ(status("/verdict", Role::kNone), 401);
}

}  // namespace
}  // namespace rankscope::http
