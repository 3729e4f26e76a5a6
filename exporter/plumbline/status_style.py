"""The status page's style sheet. Every colour is a custom property, once for light and once for dark, so that a test
can compute the contrast of each pair that is written on one another (:data:`PAIRS`)."""

from __future__ import annotations

PAIRS = tuple(
    (text, ground)
    for ground, texts in {
        "ground": ("ink", "dim", "link", "good", "note", "bad"),
        "card": ("ink", "dim", "link", "good", "note", "bad"),
        "good-ground": ("ink", "dim", "good"),
        "note-ground": ("ink", "dim", "note"),
        "bad-ground": ("ink", "dim", "bad", "link"),
        "link": ("ground",),
    }.items()
    for text in texts
)
"""(colour of text, colour below it), by their custom properties."""

MARKS = (("spark", "card"), ("accepted", "card"), ("focus", "ground"), ("focus", "card"))
"""Lines that say something: 3:1 is enough for them."""

STYLE = """
:root { color-scheme: light dark; --ground: #f7f7f4; --card: #fff; --ink: #1d2126; --dim: #5c6670; --line: #dcdfe2;
  --good: #17713c; --good-ground: #e4f3e9; --note: #855400; --note-ground: #fdf0d5; --bad: #b3201f;
  --bad-ground: #fde7e5; --link: #0b5cad; --spark: #31587f; --accepted: #855400; --focus: #0b5cad; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171a; --card: #1d2125; --ink: #e6e8ea; --dim: #9aa4ad;
  --line: #343a40; --good: #6fd08f; --good-ground: #14301f; --note: #f0bc5e; --note-ground: #352808; --bad: #ff8f87;
  --bad-ground: #40191a; --link: #7db7f5; --spark: #8fb8e0; --accepted: #f0bc5e; --focus: #7db7f5; } }
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0 auto; padding: 1rem; max-width: 76rem; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; border-radius: 2px; }
main:focus { outline: none; }
.skip { position: absolute; left: -100vw; padding: .5rem 1rem; background: var(--link); color: var(--ground); }
.skip:focus { left: 1rem; top: .5rem; z-index: 1; }
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: .25rem 1rem; }
header p { margin: 0; color: var(--dim); font-size: .875rem; }
h1 { font-size: 1.25rem; margin: 0; }
a { color: var(--link); }
nav a { display: inline-block; padding: .25rem 0; }
header nav { display: flex; flex-wrap: wrap; gap: 0 1rem; margin-left: auto; font-size: .875rem; }
nav ul { display: flex; flex-wrap: wrap; gap: 0 1.25rem; margin: 0 0 1rem; padding: .25rem 0; list-style: none;
  border-top: 1px solid var(--line); border-bottom: 1px solid var(--line); font-size: .9375rem; }
.verdict { margin: 1rem 0; padding: .875rem 1.125rem; border-radius: .5rem; border-left: .375rem solid; }
.verdict h2 { margin: 0; font-size: 1.375rem; line-height: 1.3; }
.verdict p { margin: .25rem 0 0; }
.verdict ul { margin: .5rem 0 0; padding-left: 1.25rem; color: var(--ink); }
.verdict h3 { margin: .75rem 0 0; font-size: .875rem; color: var(--dim); font-weight: 600; }
.verdict h3 + ul, .verdict details ul { margin-top: 0; font-size: .9375rem; }
.verdict.good { background: var(--good-ground); border-color: var(--good); }
.verdict.note { background: var(--note-ground); border-color: var(--note); }
.verdict.bad { background: var(--bad-ground); border-color: var(--bad); }
.good { color: var(--good); } .note { color: var(--note); } .bad { color: var(--bad); } .dim { color: var(--dim); }
td .good, td .note, td .bad, th .good, th .note, th .bad, summary .good, summary .note, summary .bad {
  font-weight: 600; }
.tag { display: inline-block; padding: 0 .5rem; border-radius: .25rem; background: var(--bad-ground);
  color: var(--bad); font-size: .8125rem; font-weight: 600; }
section > h2 { margin: 0; padding-top: .25rem; font-size: 1.0625rem; }
section > p, details > p { margin: 0 0 .375rem; font-size: .875rem; color: var(--dim); }
section { margin: 0 0 1.25rem; }
code { font: .875em ui-monospace, monospace; white-space: pre-wrap; }
table { width: 100%; border-collapse: collapse; margin: 0; background: var(--card);
  border: 1px solid var(--line); font-size: .9375rem; }
table + table, table + details, details + details { margin-top: .5rem; }
th, td { padding: .4375rem .75rem; text-align: left; vertical-align: top; border-top: 1px solid var(--line); }
thead th { border-top: 0; color: var(--dim); font-size: .8125rem; font-weight: 600; }
tbody th { font-weight: 600; }
tr:target { outline: 2px solid var(--focus); outline-offset: -2px; }
td ul { margin: 0; padding: 0; list-style: none; }
small { font-size: .8125rem; }
td small, th small { display: block; color: var(--dim); font-weight: 400; }
summary { padding: .25rem 0; cursor: pointer; font-size: .9375rem; }
summary + table, summary + p { margin-top: .25rem; }
.verdict summary { font-size: .875rem; }
.number { font-variant-numeric: tabular-nums; }
.spark { display: block; width: 7.5rem; height: 2rem; overflow: visible; }
.spark polyline { fill: none; stroke: var(--spark); stroke-width: 1.5; stroke-linejoin: round; }
.spark circle { fill: var(--spark); }
.spark .accepted { stroke: var(--accepted); stroke-width: 1.5; stroke-dasharray: 4 3; }
@media (min-width: 48.01rem) { td.number, th.number { text-align: right; white-space: nowrap; }
  th, td { overflow-wrap: break-word; }
  .spark + small { white-space: nowrap; }
  .layers tbody th { width: 7rem; } .layers td:nth-child(2) { width: 17rem; } }
@media (max-width: 48rem) {
  body { padding: .75rem; }
  header nav { margin-left: 0; }
  table, tbody, tr, td, tbody th { display: block; }
  table { border: 0; background: none; }
  tbody { border: 1px solid var(--line); background: var(--card); }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  tr { padding: .5rem .75rem; border-top: 1px solid var(--line); }
  tbody tr:first-child { border-top: 0; }
  th, td { border: 0; padding: .125rem 0; }
  td { display: flex; gap: .75rem; }
  td > div { min-width: 0; flex: 1; }
  td::before { content: attr(data-label); flex: 0 0 6.5rem; color: var(--dim); font-size: .875rem; }
  td:empty { display: none; }
  summary, nav a { padding: .375rem 0; }
}
@media (forced-colors: active) { .spark polyline, .spark circle, .spark .accepted { stroke: CanvasText; } }
"""
