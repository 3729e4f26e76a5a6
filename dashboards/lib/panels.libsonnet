// Panel constructors. Title, description and unit are required arguments without a default, so that a panel without
// them cannot be written. Units are Grafana's ids of base units (s, Bps, iops, percentunit …): the data is in base units.
local g = import '../g.libsonnet';
local colour = import 'colours.libsonnet';
local proof = import 'proof.libsonnet';

local datasource = { type: 'prometheus', uid: '${datasource}' };

local options(panel, description, unit) =
  panel.panelOptions.withDescription(description)
  + panel.queryOptions.withDatasource(datasource.type, datasource.uid)
  + panel.standardOptions.withUnit(unit);

// [[from, colour], …] as Grafana writes it.
local grafanaSteps(steps) = [{ value: step[0], color: step[1] } for step in steps];

local thresholds(panel, steps) =
  panel.standardOptions.thresholds.withMode('absolute')
  + panel.standardOptions.thresholds.withSteps(grafanaSteps(steps))
  + panel.standardOptions.color.withMode('thresholds');

// A, B, C, …
local refId(index) = std.char(std.codepoint('A') + index);

// Every query of a panel has an id of its own, unless it was given one.
local named(targets) = [
  { refId: refId(index) } + targets[index]
  for index in std.range(0, std.length(targets) - 1)
];

local fixedColour(name, value) = {
  matcher: { id: 'byRegexp', options: name },
  properties: [{ id: 'color', value: { mode: 'fixed', fixedColor: value } }],
};

// A baseline is drawn the same everywhere: dashed, grey, never filled. Its legend begins with "baseline" or
// "documented"; the documented one is another site's hardware, hence dotted and thinner. A limit, from where on an alert
// judges, begins with "limit" and is dashed in the colour of what is bad. Only of a panel with such a legend: an override
// that no line bears says that one is missing.
local dashes = {
  baseline: [
    { id: 'color', value: { mode: 'fixed', fixedColor: colour.baseline } },
    { id: 'custom.lineStyle', value: { fill: 'dash', dash: [10, 6] } },
    { id: 'custom.lineWidth', value: 2 },
    { id: 'custom.fillOpacity', value: 0 },
  ],
  documented: [
    { id: 'color', value: { mode: 'fixed', fixedColor: colour.baseline } },
    { id: 'custom.lineStyle', value: { fill: 'dot', dash: [2, 6] } },
    { id: 'custom.lineWidth', value: 1 },
    { id: 'custom.fillOpacity', value: 0 },
  ],
  limit: [
    { id: 'color', value: { mode: 'fixed', fixedColor: colour.bad } },
    { id: 'custom.lineStyle', value: { fill: 'dash', dash: [10, 6] } },
    { id: 'custom.lineWidth', value: 1 },
    { id: 'custom.fillOpacity', value: 0 },
  ],
};

local dashedLines(targets) = [
  { matcher: { id: 'byRegexp', options: '/^%s/' % word }, properties: dashes[word] }
  for word in std.objectFields(dashes)
  if std.length([true for target in targets if std.startsWith(target.legendFormat, word)]) > 0
];

// A tile without a value: what is not known is neither good nor bad. Without this Grafana paints it in the colour of the
// lowest step; the same goes for the cells of a table.
local unknown = { type: 'special', options: { match: 'null+nan', result: { index: 9, color: colour.neutral } } };
local emptyCells(text) = { type: 'special', options: { match: 'null', result: { index: 0, text: text, color: 'transparent' } } };

// The cells of a column in the colour of their step.
local coloured = { id: 'custom.cellOptions', value: { type: 'color-background', mode: 'basic' } };

{
  colour: colour,
  fixedColour: fixedColour,

  // Reads and writes wherever a legend names them as words of their own: not read-modify-write.
  operationColours: [
    fixedColour('/(^|[ (])reads?($|[ ),:])/', colour.read),
    fixedColour('/(^|[ (])writes?($|[ ),:])/', colour.write),
  ],

  // One query of a panel. `legend` is a template ({{device}}); instant queries feed stats and tables.
  target(expr, legend, instant=false)::
    g.query.prometheus.new('${datasource}', expr)
    + g.query.prometheus.withLegendFormat(legend)
    + g.query.prometheus.withEditorMode('code')
    + (if instant then g.query.prometheus.withInstant(true) + g.query.prometheus.withRange(false)
       else g.query.prometheus.withRange(true)),

  tableTarget(expr, refId)::
    self.target(expr, '', instant=true)
    + g.query.prometheus.withFormat('table')
    + g.query.prometheus.withRefId(refId),

  // Added to a graph: it asks for at most so many points. At each point its queries read every disk, OSD or finding, which
  // takes seconds for a day.
  points(count):: g.panel.timeSeries.queryOptions.withMaxDataPoints(count),

  // A line per series over time.
  timeSeries(title, description, unit, targets, logarithmic=false, min=0, overrides=[])::
    local p = g.panel.timeSeries;
    p.new(title)
    + options(p, description, unit)
    + p.queryOptions.withTargets(named(targets))
    + p.queryOptions.withInterval('15s')
    + (if min == null then {} else p.standardOptions.withMin(min))
    + p.standardOptions.withOverrides(overrides + dashedLines(targets))
    + p.fieldConfig.defaults.custom.withLineWidth(1)
    + p.fieldConfig.defaults.custom.withFillOpacity(6)
    + p.fieldConfig.defaults.custom.withShowPoints('never')
    + p.fieldConfig.defaults.custom.withSpanNulls(false)
    + (if logarithmic then
         p.fieldConfig.defaults.custom.withScaleDistribution({ type: 'log', log: 10 })
         + { fieldConfig+: { defaults+: { min:: null } } }
       else {})
    + p.options.legend.withDisplayMode('table')
    + p.options.legend.withPlacement('bottom')
    + p.options.legend.withCalcs(['lastNotNull', 'max'])
    + p.options.tooltip.withMode('multi')
    + p.options.tooltip.withSort('desc'),

  // One big figure. `steps`: [[from, colour], …]; the first `from` is null. `noValue`: what the tile says without a series
  // while the rules are evaluated. `label`: it shows that label's value instead of a figure.
  stat(title, description, unit, target, steps, noValue, decimals=null, label='')::
    local p = g.panel.stat;
    p.new(title)
    + options(p, description, unit)
    + p.queryOptions.withTargets(named([target { expr: proof.tile(target.expr, label) }]))
    + (if decimals == null then {} else p.standardOptions.withDecimals(decimals))
    + p.standardOptions.withNoValue(noValue)
    + p.standardOptions.withMappings([{
      type: 'value',
      options: { [proof.key]: { index: 0, text: proof.rules, color: colour.neutral } },
    }, unknown])
    + thresholds(p, steps)
    + p.options.withColorMode('background')
    + p.options.withGraphMode('area')
    + p.options.withJustifyMode('auto')
    + p.options.withTextMode(if label == '' then 'auto' else 'name')
    + p.options.reduceOptions.withCalcs(['lastNotNull']),

  // The distribution of a histogram over time: colour is how many operations fell into a latency range.
  heatmap(title, description, unit, target)::
    local p = g.panel.heatmap;
    p.new(title)
    + options(p, description, unit)
    + p.queryOptions.withTargets(named([target + g.query.prometheus.withFormat('heatmap')]))
    + p.queryOptions.withInterval('30s')
    + {
      options+: {
        calculate: false,
        cellGap: 0,
        color: { mode: 'scheme', scheme: 'Oranges', scale: 'exponential', exponent: 0.5, steps: 64, fill: 'dark-orange' },
        filterValues: { le: 1e-9 },
        rowsFrame: { layout: 'auto' },
        legend: { show: true },
        exemplars: { color: 'rgba(255,0,255,0.7)' },
        tooltip: { mode: 'single', yHistogram: false, showColorScale: false },
        yAxis: { unit: unit, axisPlacement: 'left', reverse: false },
        showValue: 'never',
      },
    },

  // A table of instant queries, one column a query, rows joined on their labels. `empty`: what it says without a row.
  // Grafana would write that into empty cells, too: an override takes it from there. Its columns share the panel's width:
  // without a smaller least width each takes 150 pixels, and the last ones, which say how bad it is, are out of view. Long
  // headings are wrapped from Grafana 12 on; 11 cuts them.
  table(title, description, unit, targets, transformations, overrides=[], empty='none')::
    local p = g.panel.table;
    p.new(title)
    + options(p, description, unit)
    + p.queryOptions.withTargets(named(targets))
    + p.queryOptions.withTransformations(transformations)
    + p.standardOptions.withNoValue(empty)
    + p.standardOptions.withOverrides([{ matcher: { id: 'byRegexp', options: '/.*/' }, properties: [{ id: 'noValue', value: '' }] }] + overrides)
    + { fieldConfig+: { defaults+: { custom+: { minWidth: 60, wrapHeaderText: true } } } }
    + { options+: { showHeader: true, cellHeight: 'sm' } },

  // Of a graph that reads nothing else than what the daemons' default page leaves out.
  ofFullPage:: { fieldConfig+: { defaults+: { noValue: 'only with profile: [full]' } } },

  // A click on a value of this panel leads there: `links` from links.libsonnet.
  linked(links):: { fieldConfig+: { defaults+: { links: links } } },

  // A column whose figures mean words: number as text → word. Added to a table; an empty cell stays empty. `colours`: of
  // each such number, for cells that are coloured by what is said.
  words(column, said, colours={}):: {
    fieldConfig+: {
      overrides+: [{
        matcher: { id: 'byName', options: column },
        properties: [{
          id: 'mappings',
          value: [
            emptyCells(''),
            {
              type: 'value',
              options: {
                [value]: { index: 1, text: said[value] } + (if colours == {} then {} else { color: colours[value] })
                for value in std.objectFields(said)
              },
            },
          ],
        }] + (if colours == {} then [] else [coloured]),
      }],
    },
  },

  // Columns that only the links of a row need.
  hidden(columns):: {
    fieldConfig+: {
      overrides+: [{ matcher: { id: 'byName', options: column }, properties: [{ id: 'custom.hidden', value: true }] } for column in columns],
    },
  },

  // What adds up to a whole, stacked: parts of one operation's time, shares of one total. Never unlike things.
  stacked(title, description, unit, targets, overrides=[])::
    self.timeSeries(title, description, unit, targets, overrides=overrides)
    + g.panel.timeSeries.fieldConfig.defaults.custom.withFillOpacity(55)
    + g.panel.timeSeries.fieldConfig.defaults.custom.stacking.withMode('normal'),

  // One bar a stack, in parts: one instant query with the labels `bar` and `part`. Only of parts of one whole.
  // `parts`: [[part, colour], …] from the bottom up.
  stackedBars(title, description, unit, expr, bar, part, parts)::
    local p = g.panel.barChart;
    p.new(title)
    + options(p, description, unit)
    + p.queryOptions.withTargets([self.tableTarget(expr, 'A')])
    + p.queryOptions.withTransformations([
      { id: 'groupingToMatrix', options: { rowField: bar, columnField: part, valueField: 'Value', emptyValue: 'null' } },
      {
        id: 'organize',
        options: { indexByName: { ['%s\\%s' % [bar, part]]: 0 } + { [parts[i][0]]: i + 1 for i in std.range(0, std.length(parts) - 1) } },
      },
    ])
    + p.standardOptions.withMin(0)
    + p.standardOptions.withOverrides([fixedColour('/^%s$/' % each[0], each[1]) for each in parts])
    + p.options.withXField('%s\\%s' % [bar, part])
    + p.options.withOrientation('horizontal')
    + p.options.withStacking('normal')
    + p.options.withShowValue('auto')
    + p.options.legend.withDisplayMode('list')
    + p.options.legend.withPlacement('bottom')
    + p.options.tooltip.withMode('multi')
    + p.fieldConfig.defaults.custom.withFillOpacity(80),

  // Which of a few states each series was in, over time: a line a series, coloured by the steps.
  states(title, description, unit, targets, steps, overrides=[])::
    local p = g.panel.stateTimeline;
    p.new(title)
    + options(p, description, unit)
    + p.queryOptions.withTargets(named(targets))
    + p.queryOptions.withInterval('1m')
    + p.standardOptions.withOverrides(overrides)
    + thresholds(p, steps)
    + p.options.withMergeValues(true)
    + p.options.withShowValue('never')
    + p.options.withRowHeight(0.85),

  // The worst first, one bar a subject.
  bars(title, description, unit, target, steps, min=0, max=null)::
    local p = g.panel.barGauge;
    p.new(title)
    + options(p, description, unit)
    + p.queryOptions.withTargets(named([target]))
    + p.standardOptions.withMin(min)
    + (if max == null then {} else p.standardOptions.withMax(max))
    + p.standardOptions.withMappings([unknown])
    + thresholds(p, steps)
    + p.options.withOrientation('horizontal')
    + p.options.withDisplayMode('basic')
    + p.options.withShowUnfilled(true)
    // a bar alone would be as high as the panel
    + { options+: { sizing: 'manual', minVizHeight: 16, maxVizHeight: 40 } }
    + p.options.reduceOptions.withCalcs(['lastNotNull']),

  // Rows by columns, a coloured cell where the two meet: one instant query with the labels `row` and `column`.
  // `links`: column's value → links of its cells; the row's label is ${__data.fields.<row>} there, as in any table.
  // `cell`: what a cell without a series says. `words`: value as text → what is said instead of it, in no colour.
  // `empty`: what the table says without a row.
  matrix(title, description, unit, expr, row, column, columns, steps, links={}, decimals=null, cell='', words={}, empty='none')::
    // So Grafana names the first column; the new name is that of the label, so that links find it.
    local corner = '%s\\%s' % [row, column];
    local said = words { [proof.key]: '–' };
    // The row with the words has a cell in the first column, or there would be none.
    local unproven = 'label_replace(%s * 0 + %g, "%s", "%s", "", "")' % [proof.row([expr], row), proof.code, column, columns[0]];
    self.table(
      title, description, unit, [self.tableTarget(std.rstripChars(expr, '\n') + '\nor on ()\n' + unproven, 'A')],
      [
        { id: 'groupingToMatrix', options: { rowField: row, columnField: column, valueField: 'Value', emptyValue: 'null' } },
        {
          id: 'organize',
          options: {
            indexByName: { [corner]: 0 } + { [columns[i]]: i + 1 for i in std.range(0, std.length(columns) - 1) },
            renameByName: { [corner]: row },
          },
        },
      ],
      [
        {
          matcher: { id: 'byName', options: name },
          properties: [
            coloured,
            { id: 'custom.align', value: 'center' },
            {
              id: 'mappings',
              value: [emptyCells(cell), {
                type: 'value',
                options: { [value]: { index: 1, text: said[value], color: colour.neutral } for value in std.objectFields(said) },
              }],
            },
          ] + (if std.objectHas(links, name) then [{ id: 'links', value: links[name] }] else []),
        }
        for name in columns
      ],
      empty
    )
    + thresholds(g.panel.table, steps)
    + (if decimals == null then {} else g.panel.table.standardOptions.withDecimals(decimals)),

  // A table of subjects, one row each, several figures a row. Every query is aggregated by the same labels (a query that
  // brings more labels adds columns), because rows are merged on the labels they share.
  // `labels`: [[label, heading, links or null], …] in the order shown; other labels are hidden by the aggregation.
  // `columns`: [{ expr, name, unit, steps: null, links: null }, …]; name null: the query only brings labels.
  // `sort`: heading of the column that the worst is on top by. `empty`: what it says without a row. `words`: the label that
  // says so where nothing could prove that. `wide`: heading → pixels, of columns that need more than their share.
  figures(title, description, labels, columns, sort=null, empty='none', words=labels[0][0], wide={})::
    local unproven = proof.row([column.expr for column in columns], words);
    // Grafana's name of a query's figure.
    local value(index) = 'Value #' + refId(index);
    local indices = std.range(0, std.length(columns) - 1);
    local shown = [index for index in indices if columns[index].name != null];
    local linksOf(links) = if links == null then [] else [{ id: 'links', value: links }];
    // Of columns whose words are of one length, and of the one with the arrow of the order: Grafana wraps a heading as if
    // it had none. The others share what is left.
    local widths = { severity: 100, layer: 80 } + wide
                   + (if sort == null then {} else { [sort]: 40 + 8 * std.foldl(function(most, word) std.max(most, std.length(word)), std.split(sort, ' '), 7) });
    local widthOf(name) = if name in widths then [{ id: 'custom.width', value: widths[name] }] else [];
    self.table(
      title, description, 'none',
      [self.tableTarget(columns[index].expr, refId(index)) for index in indices] + [self.tableTarget(unproven, 'proof')],
      [
        { id: 'merge', options: {} },
        {
          id: 'organize',
          options: {
            excludeByName: { Time: true, 'Value #proof': true } + { [value(index)]: true for index in indices if columns[index].name == null },
            indexByName: { [labels[i][0]]: i for i in std.range(0, std.length(labels) - 1) }
                         + { [value(shown[i])]: std.length(labels) + i for i in std.range(0, std.length(shown) - 1) },
            renameByName: { [value(index)]: columns[index].name for index in shown }
                          + { [label[0]]: label[1] for label in labels if label[0] != label[1] },
          },
        },
      ],
      [
        {
          matcher: { id: 'byName', options: columns[index].name },
          properties: [{ id: 'unit', value: columns[index].unit }]
                      + widthOf(columns[index].name)
                      + linksOf(std.get(columns[index], 'links'))
                      + (local steps = std.get(columns[index], 'steps');
                         if steps == null then [] else [
                           { id: 'thresholds', value: { mode: 'absolute', steps: grafanaSteps(steps) } },
                           { id: 'color', value: { mode: 'thresholds' } },
                           coloured,
                           { id: 'mappings', value: [emptyCells('')] },
                         ]),
        }
        for index in shown
      ] + [
        { matcher: { id: 'byName', options: label[1] }, properties: linksOf(label[2]) + widthOf(label[1]) }
        for label in labels
        if label[2] != null || label[1] in widths
      ],
      empty
    )
    + (if sort == null then {} else { options+: { sortBy: [{ displayName: sort, desc: true }] } }),

  // The alerts that fire now, the worst first. In less than half the width of a page their names are cut off.
  alerts(title, description, expr, links=[])::
    self.figures(
      title, description,
      [['severity', 'severity', null], ['alertname', 'alert', null], ['layer', 'layer', null], ['cluster', 'cluster', null], ['instance', 'node', links]],
      [{ expr: expr, name: 'firing for', unit: 's' }],
      sort='firing for', wide={ alert: 250 }
    ),

  // `inside`: the panels of a row that opens closed. `of`: the variable of which each chosen value has such a row.
  row(title, inside=null, of=null)::
    g.panel.row.new(title)
    + (if inside == null then g.panel.row.withCollapsed(false) else g.panel.row.withCollapsed(true) + g.panel.row.withPanels(inside))
    + (if of == null then {} else g.panel.row.withRepeat(of)),
}
