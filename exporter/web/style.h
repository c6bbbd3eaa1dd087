// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The pages' style and its hash for the content security policy; a test compares the two and
// prints the right hash. Only shell.cc includes this.
#pragma once

#include <string_view>

namespace rankscope::web {

inline constexpr std::string_view kStyleSha256 = "Hf/4IzWyVaMHXkriNIcFjbeUjFT+K3txTGx/2EH88b0=";

inline constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--bg:#f6f7f9;--card:#fff;--ink:#1b1f24;--soft:#59636e;--line:#d9dee4;
--link:#0b5cad;--ok:#1a7f37;--info:#0b5cad;--warning:#9a6700;--critical:#c62828;--none:#59636e}
@media (prefers-color-scheme:dark){:root{--bg:#0f1318;--card:#171c23;--ink:#e4e8ed;--soft:#9aa4af;
--line:#2b333d;--link:#6cb2ff;--ok:#4cc26a;--info:#6cb2ff;--warning:#e0b13c;--critical:#ff7b72;--none:#9aa4af}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main,header,footer{max-width:92rem;margin:0 auto;padding:0 1.25rem}
header{padding-top:1.5rem;display:flex;flex-wrap:wrap;gap:.25rem 1.5rem;align-items:baseline}
h1{font-size:1.3rem;margin:1.5rem 0 .5rem;display:flex;flex-wrap:wrap;gap:.3rem .8rem;align-items:baseline}
.brand{font-size:1.2rem;font-weight:700}
.brand a{color:inherit}
.lead{font-size:1.15rem;margin:.4rem 0 .8rem;max-width:60rem}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(9rem,1fr));gap:.5rem 1.2rem;margin:0 0 1rem}
.facts dt{color:var(--soft);font-size:.8rem}
.facts dd{margin:0;overflow-wrap:anywhere}
.now{border-left:.3rem solid var(--info)}
.now h2{margin-top:0}
.now ol{margin:.2rem 0 .6rem;padding-left:1.4rem}
form{display:flex;flex-wrap:wrap;gap:.5rem 1rem;align-items:end;margin:0 0 .8rem}
label{display:grid;font-size:.8rem;color:var(--soft)}
select,button{font:inherit;color:inherit;background:var(--card);border:1px solid var(--line);border-radius:.35rem;padding:.25rem .5rem;max-width:12rem}
a:focus-visible,select:focus-visible,button:focus-visible,summary:focus-visible,[tabindex]:focus-visible{outline:2px solid var(--link);outline-offset:1px}
tbody th{font-weight:600}
.ranks{list-style:none;margin:0;padding:0;display:flex;flex-wrap:wrap;gap:2px}
.ranks li{position:relative;min-width:1.9rem;padding:.1rem .25rem;text-align:center;font-size:.75rem;font-variant-numeric:tabular-nums;border-radius:.2rem;border:1px solid var(--line)}
.ranks .culprit{outline:2px solid var(--critical);outline-offset:1px;font-weight:700}
.told-only{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.ranks li:focus .told-only{left:0;top:100%;z-index:1;width:max-content;max-width:20rem;height:auto;clip-path:none;white-space:normal;text-align:left;background:var(--card);border:1px solid var(--line);padding:.2rem .5rem;border-radius:.3rem}
.key span{display:inline-block;width:.9rem;height:.9rem;border-radius:.2rem;border:1px solid var(--line);vertical-align:-.1rem;margin:0 .3rem 0 .6rem}
.key{font-size:.8rem}
li.runs,.key .runs{background:color-mix(in srgb,var(--ok) 30%,var(--card))}
li.waits,.key .waits{background:color-mix(in srgb,var(--warning) 35%,var(--card))}
li.failed,.key .failed{background:color-mix(in srgb,var(--critical) 35%,var(--card))}
li.done,.key .done{background:var(--card)}
li.gone,.key .gone{background:repeating-linear-gradient(45deg,var(--line) 0 3px,var(--card) 3px 6px)}
.chain{list-style:none;margin:.3rem 0;padding:0}
.chain li{border-left:.2rem solid var(--line);padding:.15rem 0 .6rem .8rem;margin:0;position:relative}
.chain li::before{content:"";position:absolute;left:-.4rem;top:.5rem;width:.6rem;height:.6rem;border-radius:50%;background:var(--soft)}
.chain li.root::before{background:var(--critical)}
[hidden]{display:none}
header p{margin:0;color:var(--soft)}
nav{margin-left:auto;display:flex;gap:1rem}
h2{font-size:1.05rem;margin:2rem 0 .6rem}
a{color:var(--link);text-decoration:none}
a:hover,a:focus{text-decoration:underline}
.card{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:1rem 1.25rem;margin-bottom:1rem}
.wide{overflow-x:auto;padding:0}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:.4rem .65rem;border-top:1px solid var(--line);white-space:nowrap}
thead th{border-top:0;color:var(--soft);font-weight:600;font-size:.85rem}
td.number,th.number{text-align:right}
td.text{white-space:normal;min-width:16rem}
td.wraps{white-space:normal;max-width:14rem}
.chip{display:inline-block;padding:0 .55rem;border-radius:1rem;border:1px solid currentColor;font-weight:600;font-size:.85rem}
.ok{color:var(--ok)}.info{color:var(--info)}.warning{color:var(--warning)}.critical{color:var(--critical)}.none{color:var(--none)}
.soft{color:var(--soft)}
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
