"""The style of a report's page: light, dark and paper; one column on a phone, three on a desk."""

STYLE = """
:root { color-scheme: light dark; --ground: #f7f7f4; --card: #fff; --ink: #1d2126; --dim: #5c6670; --line: #dcdfe2;
  --note: #855400; --note-ground: #fdf0d5; --link: #0b5cad; --s0: #0b63b5; --s1: #c2410c; --s2: #15803d;
  --s3: #7e22ce; --s4: #0e7490; --s5: #be185d; --s6: #8a6100; --s7: #52525b; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171a; --card: #1d2125; --ink: #e6e8ea; --dim: #9aa4ad;
  --line: #343a40; --note: #f0bc5e; --note-ground: #352808; --link: #7db7f5; --s0: #6cb2ff; --s1: #ff9a5c;
  --s2: #6fd08f; --s3: #c69bff; --s4: #5fd3e6; --s5: #ff8fc0; --s6: #e3c04d; --s7: #b4b4bd; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 80rem; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: .5rem 0 .25rem; }
h2 { font-size: 1.375rem; margin: 2.5rem 0 .75rem; padding-top: .75rem; border-top: 2px solid var(--ink); }
h3 { font-size: 1.0625rem; margin: 0; }
h4 { font-size: .8125rem; font-weight: 600; color: var(--dim); margin: 0 0 .25rem; }
a { color: var(--link); }
.lead, .dim, small { color: var(--dim); }
.lead { margin: 0 0 1rem; }
small { font-size: .8125rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none; margin: 1rem 0; padding: 0; }
.subjects { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem; }
.subject, figure { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: 1rem; }
.subject dl { display: grid; grid-template-columns: minmax(5.5rem, max-content) 1fr; gap: .125rem .75rem;
  margin: .75rem 0 0; font-size: .875rem; }
dt { color: var(--dim); } dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
.chip { display: inline-block; padding: 0 .5rem; border: 1px solid var(--line); border-radius: 1rem;
  font-size: .75rem; font-weight: 600; color: var(--dim); vertical-align: middle; }
.plots { display: flex; flex-wrap: wrap; gap: 1rem; margin-bottom: 1.5rem; }
figure { margin: 0; break-inside: avoid; min-width: 0; flex: 1 1 100%; }
figure.of1 { flex-basis: 22rem; max-width: 38.25rem; } figure.of2 { flex-basis: 44rem; }
figcaption p { margin: 0; font-size: .875rem; color: var(--dim); }
.legend { display: flex; flex-wrap: wrap; gap: .125rem 1rem; list-style: none; margin: .375rem 0 0; padding: 0;
  font-size: .8125rem; }
.legend li { display: flex; align-items: center; gap: .375rem; }
.swatch { width: 1.625rem; height: .75rem; flex: none; } .swatch.square { width: .75rem; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: 1rem 1.5rem;
  margin-top: .75rem; align-items: start; }
.panel { max-width: 27rem; }
.panel svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { font: 11px system-ui, sans-serif; fill: var(--dim); }
svg text.small { font-size: 9px; } svg text.figure { fill: var(--ink); font-variant-numeric: tabular-nums; }
svg text.group { fill: var(--ink); font-weight: 600; }
.grid { stroke: var(--line); stroke-width: 1; } .axis, .tick { stroke: var(--dim); stroke-width: 1; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; } .dashed { stroke-dasharray: 5 3; }
.hollow { fill: var(--card); stroke-width: 1.75; }
COLOURS
details { margin-top: .75rem; } summary { cursor: pointer; font-size: .875rem; color: var(--link); }
.all > summary { font-size: 1.0625rem; font-weight: 700; padding: .375rem 0; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.notes h3 { margin-top: .75rem; font-size: .875rem; }
.wide { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; background: var(--card); border: 1px solid var(--line);
  font-size: .875rem; }
caption { text-align: left; padding: .5rem 0; font-weight: 700; font-size: 1.0625rem; }
caption small { display: block; font-weight: 400; }
th, td { padding: .375rem .625rem; text-align: left; vertical-align: top; border-top: 1px solid var(--line); }
thead th { color: var(--dim); font-size: .8125rem; font-weight: 600; border-top: 0; }
tbody th { font-weight: 600; } tbody th small { display: block; font-weight: 400; }
tr.class th { background: var(--ground); font-size: .9375rem; }
.data td, .data th { white-space: nowrap; } .data td { font-variant-numeric: tabular-nums; }
.figures { display: grid; grid-template-columns: minmax(4.5rem, max-content) 1fr; gap: 0 .625rem; margin: 0; }
.figures dd { font-variant-numeric: tabular-nums; } .figures dd small { margin-left: .375rem; white-space: nowrap; }
.below { display: flex; flex-wrap: wrap; gap: 0 .75rem; font-size: .8125rem; color: var(--dim); }
.mark { color: var(--note); font-weight: 600; } .doubtful { background: var(--note-ground); border-radius: .25rem;
  padding: 0 .375rem; display: inline-block; }
.notes { font-size: .8125rem; color: var(--dim); } .notes ol { padding-left: 2rem; margin: .25rem 0; }
.rest li { margin: .25rem 0; } .signed { display: none; }
@media screen and (max-width: 48rem) {
  body { padding: .75rem; }
  .main, .main tbody, .main tr, .main td, .main tbody th, .main caption { display: block; }
  .main { border: 0; background: none; }
  .main tbody { border: 1px solid var(--line); background: var(--card); }
  .main thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .main tr { padding: .5rem .75rem; border-top: 1px solid var(--line); }
  .main th, .main td { border: 0; padding: .125rem 0; }
  .main tr.class { padding: 0; } .main tr.class th { padding: .375rem .75rem; }
  .main td::before { content: attr(data-label); display: block; color: var(--dim); font-size: .8125rem;
    font-weight: 600; }
  .main td:empty { display: none; }
}
@media screen and (min-width: 62rem) { /* one or two panels fill their figure; their text keeps the page's size */
  .of1 .panel, .of2 .panel { max-width: 36rem; }
  .of1 svg text, .of2 svg text { font-size: 8.5px; } .of1 svg text.small, .of2 svg text.small { font-size: 7.5px; }
}
@media print {
  :root { color-scheme: light; --ground: #fff; --card: #fff; --ink: #000; --dim: #444; --line: #bbb; --note: #6b4300;
    --note-ground: #eee; --link: #000; --s0: #0b63b5; --s1: #c2410c; --s2: #15803d; --s3: #7e22ce; --s4: #0e7490;
    --s5: #be185d; --s6: #8a6100; --s7: #52525b; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav, .subject summary { display: none; } .all > summary { list-style: none; color: #000; }
  .panels { grid-template-columns: repeat(3, 1fr); } .of2 .panels { grid-template-columns: repeat(2, 1fr); }
  .of3 svg text { font-size: 13px; } .of3 svg text.small { font-size: 10px; }
  .main { font-size: 8pt; line-height: 1.3; } .main small, .below { font-size: 7pt; }
  .figures { grid-template-columns: 2.5rem 1fr; } th, td { padding: .125rem .375rem; }
  h2, h3, caption, thead { break-after: avoid; } tr, .subject { break-inside: avoid; }
  details::details-content { content-visibility: visible; display: block; height: auto; }
  .plot-data { display: none; }
  .signed { display: block; margin-top: 1.5rem; }
}
""".replace(
    "COLOURS",
    "\n".join(f".line{n} {{ stroke: var(--s{n}); }} .fill{n} {{ fill: var(--s{n}); }}" for n in range(8)),
)
