// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The pages' script and its hash for the content security policy; a test compares the two and
// prints the right hash. It asks for the same page again and puts what is new in the place of what
// is old, child by child: what one has opened stays open, and scroll, selection and focus stay
// where they are. Without it the pages say the same, once. Only shell.cc includes this.
#pragma once

#include <string_view>

namespace rankscope::web {

inline constexpr std::string_view kScriptSha256 = "ABi3XRY6Um9vSwGfM0TbNTDtQtasTgZqSo2sL6Mkr4A=";

inline constexpr std::string_view kScript = R"js(
"use strict";
(() => {
  const every = 5000;
  let tag = null;
  const same = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && (a.id || "") === (b.id || "");
  const keeps = (element, name) => (element.nodeName === "DETAILS" && name === "open") ||
    (element === document.activeElement && name === "value");
  function morph(old, next) {
    if (old.nodeType !== 1) {
      if (old.nodeValue !== next.nodeValue) old.nodeValue = next.nodeValue;
      return;
    }
    for (const { name, value } of [...next.attributes])
      if (!keeps(old, name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
    for (const { name } of [...old.attributes])
      if (!keeps(old, name) && !next.hasAttribute(name)) old.removeAttribute(name);
    if (old.nodeName === "FORM") return;
    const theirs = [...next.childNodes];
    let mine = old.firstChild;
    for (const node of theirs) {
      if (mine && same(mine, node)) {
        morph(mine, node);
        mine = mine.nextSibling;
      } else {
        let later = mine;
        while (later && !(node.id && same(later, node))) later = later.nextSibling;
        if (later) {
          old.insertBefore(later, mine);
          morph(later, node);
        } else {
          old.insertBefore(document.importNode(node, true), mine);
        }
      }
    }
    while (mine) {
      const gone = mine;
      mine = mine.nextSibling;
      gone.remove();
    }
  }
  async function look() {
    const offline = document.getElementById("offline");
    try {
      const headers = tag ? { "If-None-Match": tag } : {};
      const answer = await fetch(location.href, { headers, cache: "no-store", credentials: "same-origin" });
      offline.hidden = answer.ok || answer.status === 304;
      if (!answer.ok) return;
      tag = answer.headers.get("ETag");
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of ["main", "#as-of", "#node-name"]) {
        const old = document.querySelector(part), next = page.querySelector(part);
        if (old && next) morph(old, next);
      }
    } catch (error) {
      offline.hidden = false;
    }
  }
  async function run() {
    for (;;) {
      await new Promise((done) => setTimeout(done, every));
      if (!document.hidden) await look();
    }
  }
  document.addEventListener("keydown", (event) => {
    const cell = event.target.closest && event.target.closest(".ranks [tabindex]");
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (!cell || !step) return;
    const cells = [...cell.parentNode.children];
    const at = Math.min(Math.max(cells.indexOf(cell) + step, 0), cells.length - 1);
    cell.tabIndex = -1;
    cells[at].tabIndex = 0;
    cells[at].focus();
    event.preventDefault();
  });
  run();
})();
)js";

}  // namespace rankscope::web
