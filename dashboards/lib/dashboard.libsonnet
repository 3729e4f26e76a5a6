// What every dashboard has: variables, links that keep them, annotations, a tag, a stable uid; and its layout.
local g = import '../g.libsonnet';
local annotations = import 'annotations.libsonnet';
local pages = import 'pages.libsonnet';
local p = import 'panels.libsonnet';

// Grafana's grid is 24 wide.
local width = 24;

// Panels side by side, a new line where one does not fit any more. `sized`: [[panel, width, height], …].
local flow(sized, top) = std.foldl(
  function(done, each)
    local panel = each[0], w = each[1], h = each[2];
    local breaks = done.x + w > width;
    local x = if breaks then 0 else done.x;
    local y = if breaks then done.bottom else done.y;
    {
      x: x + w,
      y: y,
      bottom: std.max(h + y, done.bottom),
      panels: done.panels + [panel { gridPos: { x: x, y: y, w: w, h: h } }],
    },
  sized,
  { x: 0, y: top, bottom: top, panels: [] }
);

// Sections one below the other, each with its heading; the first may have none (title null). `closed`: a row that nobody
// opens first. `of`: one for each chosen value of that variable.
local layout(sections) = std.foldl(
  function(done, section)
    local titled = section.title != null, closed = std.get(section, 'closed', false);
    local placed = flow(section.panels, done.bottom + (if titled then 1 else 0));
    local heading = if !titled then [] else [
      p.row(section.title, inside=if closed then placed.panels, of=std.get(section, 'of')) { gridPos: { x: 0, y: done.bottom, w: width, h: 1 } },
    ];
    if closed then { bottom: done.bottom + 1, panels: done.panels + heading }
    else { bottom: placed.bottom, panels: done.panels + heading + placed.panels },
  sections,
  { bottom: 0, panels: [] }
).panels;

// What a graph says without a series; tiles and tables have words of their own.
local spoken(sections, empty) = [
  section { panels: [[{ fieldConfig+: { defaults+: { noValue: empty } } } + each[0]] + each[1:] for each in section.panels] }
  for section in sections
];

local linkTo(page) =
  g.dashboard.link.link.new(page.short, '/d/%s' % page.uid)
  + g.dashboard.link.link.options.withIncludeVars(true)
  + g.dashboard.link.link.options.withKeepTime(true);

{
  // `page`: a key of pages.libsonnet. `sections`: [{ title, panels: [[panel, width, height], …] }, …].
  // `shown`: matchers on alerts and baselines of what this page shows, for the marks in its graphs; `baselines`: those on
  // baselines, where alerts have a label that these have not. `empty`: what a graph without a series says.
  new(page, variables, sections, shown='', baselines=shown, from='now-6h', refresh='1m', empty='not measured here')::
    local this = pages[page];
    g.dashboard.new(this.title)
    + g.dashboard.withUid(this.uid)
    + g.dashboard.withDescription(this.question)
    + g.dashboard.withTags(['plumbline', 'plumbline-l%d' % this.level])
    + g.dashboard.withTimezone('browser')
    + g.dashboard.withEditable(false)
    + g.dashboard.graphTooltip.withSharedCrosshair()
    + g.dashboard.time.withFrom(from)
    + g.dashboard.time.withTo('now')
    + g.dashboard.withRefresh(refresh)
    + g.dashboard.withVariables(variables)
    + g.dashboard.withLinks(
      [linkTo(pages[up]) for up in this.up]
      + [
        g.dashboard.link.dashboards.new('Plumbline', ['plumbline'])
        + g.dashboard.link.dashboards.options.withAsDropdown(true)
        + g.dashboard.link.dashboards.options.withIncludeVars(true)
        + g.dashboard.link.dashboards.options.withKeepTime(true),
      ]
    )
    + g.dashboard.withAnnotations(annotations(shown, baselines))
    + g.dashboard.withPanels(layout(spoken(sections, empty))),
}
