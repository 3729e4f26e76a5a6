// Panel constructors. Title, description and unit are required arguments without a default, so that a panel without
// them cannot be written. Units are Grafana's ids of base units (s, Bps, iops, percentunit …): the data is in base units.
local g = import '../g.libsonnet';

local datasource = { type: 'prometheus', uid: '${datasource}' };

// What means the same looks the same on every dashboard.
local colour = {
  read: '#3274D9',
  write: '#E0752D',
  good: '#37872D',
  warning: '#E0B400',
  bad: '#C4162A',
  baseline: '#8F8F8F',
};

local options(panel, description, unit) =
  panel.panelOptions.withDescription(description)
  + panel.queryOptions.withDatasource(datasource.type, datasource.uid)
  + panel.standardOptions.withUnit(unit);

local fixedColour(name, value) = {
  matcher: { id: 'byRegexp', options: name },
  properties: [{ id: 'color', value: { mode: 'fixed', fixedColor: value } }],
};

// A baseline is drawn the same everywhere: dashed, grey, never filled. Its legend begins with "baseline" or
// "documented"; the documented one is another site's hardware, hence dotted and thinner.
local baselineLines = [
  {
    matcher: { id: 'byRegexp', options: '/^baseline/' },
    properties: [
      { id: 'color', value: { mode: 'fixed', fixedColor: colour.baseline } },
      { id: 'custom.lineStyle', value: { fill: 'dash', dash: [10, 6] } },
      { id: 'custom.lineWidth', value: 2 },
      { id: 'custom.fillOpacity', value: 0 },
    ],
  },
  {
    matcher: { id: 'byRegexp', options: '/^documented/' },
    properties: [
      { id: 'color', value: { mode: 'fixed', fixedColor: colour.baseline } },
      { id: 'custom.lineStyle', value: { fill: 'dot', dash: [2, 6] } },
      { id: 'custom.lineWidth', value: 1 },
      { id: 'custom.fillOpacity', value: 0 },
    ],
  },
];

{
  colour: colour,
  fixedColour: fixedColour,

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

  // A line per series over time.
  timeSeries(title, description, unit, targets, logarithmic=false, min=0, overrides=[])::
    local p = g.panel.timeSeries;
    p.new(title)
    + options(p, description, unit)
    + p.queryOptions.withTargets(targets)
    + p.queryOptions.withInterval('15s')
    + (if min == null then {} else p.standardOptions.withMin(min))
    + p.standardOptions.withOverrides(overrides + baselineLines)
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

  // One big figure. `steps`: [[from, colour], …]; the first `from` is null.
  stat(title, description, unit, target, steps, decimals=null, noValue='no data')::
    local p = g.panel.stat;
    p.new(title)
    + options(p, description, unit)
    + p.queryOptions.withTargets([target])
    + (if decimals == null then {} else p.standardOptions.withDecimals(decimals))
    + p.standardOptions.withNoValue(noValue)
    + p.standardOptions.thresholds.withMode('absolute')
    + p.standardOptions.thresholds.withSteps([{ value: step[0], color: step[1] } for step in steps])
    + p.standardOptions.color.withMode('thresholds')
    + p.options.withColorMode('background')
    + p.options.withGraphMode('area')
    + p.options.withJustifyMode('auto')
    + p.options.withTextMode('auto')
    + p.options.reduceOptions.withCalcs(['lastNotNull']),

  // The distribution of a histogram over time: colour is how many operations fell into a latency range.
  heatmap(title, description, unit, target)::
    local p = g.panel.heatmap;
    p.new(title)
    + options(p, description, unit)
    + p.queryOptions.withTargets([target + g.query.prometheus.withFormat('heatmap')])
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

  // A table of instant queries, one column a query, rows joined on their labels.
  table(title, description, unit, targets, transformations, overrides=[])::
    local p = g.panel.table;
    p.new(title)
    + options(p, description, unit)
    + p.queryOptions.withTargets(targets)
    + p.queryOptions.withTransformations(transformations)
    + p.standardOptions.withOverrides(overrides)
    + { options+: { showHeader: true, cellHeight: 'sm' } },

  // A table of several figures of the same subject: one query a column, rows joined by the label `by`. `columns`:
  // [[query, heading, unit], ...]; the first query brings the labels that are shown before them.
  joinedTable(title, description, by, columns)::
    local refId(index) = std.char(std.codepoint('A') + index);
    self.table(
      title, description, 'none',
      [self.tableTarget(columns[index][0], refId(index)) for index in std.range(0, std.length(columns) - 1)],
      [
        { id: 'joinByField', options: { byField: by, mode: 'outer' } },
        {
          id: 'organize',
          options: {
            excludeByName: { Time: true, 'Value #A': true } + { ['Time %d' % index]: true for index in std.range(1, std.length(columns)) },
            renameByName: { ['Value #' + refId(index)]: columns[index][1] for index in std.range(1, std.length(columns) - 1) },
          },
        },
      ],
      [
        { matcher: { id: 'byName', options: columns[index][1] }, properties: [{ id: 'unit', value: columns[index][2] }] }
        for index in std.range(1, std.length(columns) - 1)
      ]
    ),

  row(title):: g.panel.row.new(title) + g.panel.row.withCollapsed(false),
}
