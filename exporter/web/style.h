// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The status page's style and its hash for the content security policy; a test compares the two and
// prints the right hash. Only status_page.cc includes this.
#pragma once

#include <string_view>

namespace rankscope::web {

inline constexpr std::string_view kStyleSha256 = "MX4lriQIP27f9XBM8R2rY5xxpZuhHdNZ1q/RmV8DdWA=";

inline constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--bg:#f6f7f9;--card:#fff;--ink:#1b1f24;--soft:#59636e;--line:#d9dee4;
--link:#0b5cad;--ok:#1a7f37;--info:#0b5cad;--warning:#9a6700;--critical:#c62828;--none:#59636e}
@media (prefers-color-scheme:dark){:root{--bg:#0f1318;--card:#171c23;--ink:#e4e8ed;--soft:#9aa4af;
--line:#2b333d;--link:#6cb2ff;--ok:#4cc26a;--info:#6cb2ff;--warning:#e0b13c;--critical:#ff7b72;--none:#9aa4af}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main,header,footer{max-width:76rem;margin:0 auto;padding:0 1.25rem}
header{padding-top:1.5rem;display:flex;flex-wrap:wrap;gap:.25rem 1.5rem;align-items:baseline}
header h1{font-size:1.35rem;margin:0}
header p{margin:0;color:var(--soft)}
nav{margin-left:auto;display:flex;gap:1rem}
h2{font-size:1.05rem;margin:2rem 0 .6rem}
h3{font-size:.8rem;margin:1.1rem 0 .3rem;color:var(--soft);font-weight:600;text-transform:uppercase;letter-spacing:.04em}
a{color:var(--link);text-decoration:none}
a:hover,a:focus{text-decoration:underline}
.card{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:1rem 1.25rem;margin-bottom:1rem}
.wide{overflow-x:auto;padding:0}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:.5rem .9rem;border-top:1px solid var(--line);white-space:nowrap}
thead th{border-top:0;color:var(--soft);font-weight:600;font-size:.85rem}
td.number,th.number{text-align:right}
td.text{white-space:normal;min-width:16rem}
.chip{display:inline-block;padding:0 .55rem;border-radius:1rem;border:1px solid currentColor;font-weight:600;font-size:.85rem}
.ok{color:var(--ok)}.info{color:var(--info)}.warning{color:var(--warning)}.critical{color:var(--critical)}.none{color:var(--none)}
.soft{color:var(--soft)}
meter{width:5rem;height:.7rem;vertical-align:middle}
.title{display:flex;flex-wrap:wrap;gap:.3rem .9rem;align-items:baseline;margin:0}
.title b{font-size:1.05rem}
ul{margin:.2rem 0;padding-left:1.2rem}
li{margin:.15rem 0;overflow-wrap:anywhere}
code{font:.87em ui-monospace,SFMono-Regular,Menlo,monospace;overflow-wrap:anywhere}
.gpus{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(17rem,100%),1fr));gap:1rem 1.5rem}
figure{margin:0;min-width:0;font-size:.85rem}
figcaption{display:flex;flex-wrap:wrap;gap:.1rem .5rem;align-items:baseline;margin-bottom:.25rem}
.axis{display:flex;justify-content:space-between;gap:.5rem;font-variant-numeric:tabular-nums}
.axis.soft{font-size:.75rem;margin-bottom:.35rem}
.told{margin:0}
svg{display:block;width:100%;height:3.25rem;background:var(--bg);border:1px solid var(--line);border-radius:.3rem}
path{fill:none;stroke:none;vector-effect:non-scaling-stroke}
path.memory{fill:var(--none);fill-opacity:.35}
path.sm{fill:var(--ok);fill-opacity:.4}
path.engine{stroke:var(--info);stroke-width:1.5px}
path.throttled{fill:var(--warning)}
path.xid{stroke:var(--critical);stroke-width:2px}
svg.strip{height:1.5rem}
path.went{fill:var(--ok);fill-opacity:.35}
path.failed{fill:var(--critical);fill-opacity:.35}
path.suspended{fill:var(--warning);fill-opacity:.45}
path.mark{stroke:var(--ink);stroke-width:1.5px}
ol.marks{list-style:none;margin:.2rem 0;padding:0;font-size:.9rem}
ol.marks time{color:var(--soft);font-variant-numeric:tabular-nums}
span.engine{color:var(--info)}span.sm{color:var(--ok)}
details summary{cursor:pointer;color:var(--link)}
footer{color:var(--soft);padding-top:1rem;padding-bottom:2rem;font-size:.85rem}
)css";

}  // namespace rankscope::web
