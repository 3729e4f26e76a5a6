// What Grafana knows: options of each type of panel, of its fields, units, reducers. The compiler holds each list against
// the interface in @grafana/schema, so a release that adds or drops an option is noticed.

import {
  dataLinksOverrideProcessor,
  displayNameOverrideProcessor,
  fieldColorModeRegistry,
  FieldConfigOptionsRegistry,
  FieldConfigProperty,
  type FieldConfigPropertyItem,
  fieldMatchers,
  fieldReducers,
  getValueFormats,
  identityOverrideProcessor,
  MappingType,
  standardFieldConfigEditorRegistry,
  standardTransformers,
  standardTransformersRegistry,
  thresholdsOverrideProcessor,
  unitOverrideProcessor,
  valueMappingsOverrideProcessor,
} from '@grafana/data';
import type { AxisConfig, GraphFieldConfig, HideableFieldConfig, TableFieldOptions } from '@grafana/schema';
import type * as BarChart from '@grafana/schema/dist/esm/raw/composable/barchart/panelcfg/x/BarChartPanelCfg_types.gen';
import type * as BarGauge from '@grafana/schema/dist/esm/raw/composable/bargauge/panelcfg/x/BarGaugePanelCfg_types.gen';
import type * as Heatmap from '@grafana/schema/dist/esm/raw/composable/heatmap/panelcfg/x/HeatmapPanelCfg_types.gen';
import type * as Timeline from '@grafana/schema/dist/esm/raw/composable/statetimeline/panelcfg/x/StateTimelinePanelCfg_types.gen';
import type * as Stat from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type * as Table from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type * as Time from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

import type { Panel } from './job';

type All<T> = Record<keyof T, true>;

const hideable: All<HideableFieldConfig> = { hideFrom: true };
const axis: All<AxisConfig> = {
  axisBorderShow: true, axisCenteredZero: true, axisColorMode: true, axisGridShow: true, axisLabel: true,
  axisPlacement: true, axisSoftMax: true, axisSoftMin: true, axisWidth: true, scaleDistribution: true,
};
const graph: All<GraphFieldConfig> = {
  ...hideable, ...axis,
  barAlignment: true, barMaxWidth: true, barWidthFactor: true, drawStyle: true, fillBelowTo: true, fillColor: true,
  fillOpacity: true, gradientMode: true, insertNulls: true, lineColor: true, lineInterpolation: true, lineStyle: true,
  lineWidth: true, pointColor: true, pointSize: true, pointSymbol: true, showPoints: true, showValues: true,
  spanNulls: true, stacking: true, thresholdsStyle: true, transform: true,
};
const column: All<TableFieldOptions> = {
  ...hideable,
  align: true, cellOptions: true, displayMode: true, filterable: true, footer: true, hideHeader: true, inspect: true,
  minWidth: true, sortable: true, styleField: true, tooltip: true, width: true, wrapHeaderText: true, wrapText: true,
};
const heatmapField: All<Heatmap.FieldConfig> = { ...hideable, scaleDistribution: true };
const timelineField: All<Timeline.FieldConfig> = { ...hideable, ...axis, fillOpacity: true, lineWidth: true };
const barField: All<BarChart.FieldConfig> = {
  ...hideable, ...axis, fillOpacity: true, gradientMode: true, lineWidth: true, thresholdsStyle: true,
};

const reduced = { orientation: true, reduceOptions: true, text: true } as const;
const time: All<Time.Options> = {
  annotations: true, disableKeyboardEvents: true, legend: true, orientation: true, timeCompare: true, timezone: true,
  tooltip: true,
};
const stat: All<Stat.Options> = {
  ...reduced, colorMode: true, graphMode: true, justifyMode: true, percentChangeColorMode: true,
  showPercentChange: true, textMode: true, wideLayout: true,
};
const barGauge: All<BarGauge.Options> = {
  ...reduced, displayMode: true, legend: true, maxVizHeight: true, minVizHeight: true, minVizWidth: true,
  namePlacement: true, showUnfilled: true, sizing: true, valueMode: true,
};
const table: All<Table.Options> = {
  cellHeight: true, disableKeyboardEvents: true, enablePagination: true, frameIndex: true, frozenColumns: true,
  maxRowHeight: true, pageSize: true, showHeader: true, showTypeIcons: true, sortBy: true,
};
const heatmap: All<Heatmap.Options> = {
  annotations: true, calculate: true, calculation: true, cellGap: true, cellRadius: true, cellValues: true, color: true,
  exemplars: true, filterValues: true, legend: true, rowsFrame: true, selectionMode: true, showValue: true,
  tooltip: true, yAxis: true,
};
const timeline: All<Timeline.Options> = {
  alignValue: true, annotations: true, legend: true, mergeValues: true, perPage: true, rowHeight: true, showValue: true,
  timezone: true, tooltip: true,
};
const bars: All<BarChart.Options> = {
  barRadius: true, barWidth: true, colorByField: true, fullHighlight: true, groupWidth: true, legend: true,
  orientation: true, showValue: true, stacking: true, text: true, tooltip: true, xField: true,
  xTickLabelMaxLength: true, xTickLabelRotation: true, xTickLabelSpacing: true,
};

/** Type of panel → its options, and those that it adds to each field. */
const TYPES: Record<string, { options: Record<string, true>; fields: Record<string, true> }> = {
  timeseries: { options: time, fields: graph },
  stat: { options: stat, fields: {} },
  bargauge: { options: barGauge, fields: {} },
  table: { options: table, fields: column },
  heatmap: { options: heatmap, fields: heatmapField },
  'state-timeline': { options: timeline, fields: timelineField },
  barchart: { options: bars, fields: barField },
};

const PROCESSED: Record<string, FieldConfigPropertyItem['process']> = {
  unit: unitOverrideProcessor,
  displayName: displayNameOverrideProcessor,
  thresholds: thresholdsOverrideProcessor,
  mappings: valueMappingsOverrideProcessor,
  links: dataLinksOverrideProcessor,
};

function property(path: string, isCustom: boolean): FieldConfigPropertyItem {
  const nothing = () => null;
  return {
    id: isCustom ? `custom.${path}` : path,
    path,
    isCustom,
    name: path,
    editor: nothing,
    override: nothing,
    process: PROCESSED[path] ?? identityOverrideProcessor,
    shouldApply: () => true,
  };
}

const standard = () => Object.values(FieldConfigProperty).map((path) => property(path, false));

/** Fills the registries that Grafana fills at its start. */
export function start(): void {
  standardFieldConfigEditorRegistry.setInit(standard);
  const transformers = new Map(Object.values(standardTransformers).map((each) => [each.id, each]));
  standardTransformersRegistry.setInit(() =>
    [...transformers.values()].map((each) => ({
      id: each.id,
      name: each.name,
      transformation: () => Promise.resolve(each as any),
      editor: () => null,
      imageDark: '',
      imageLight: '',
    })),
  );
}

/** What a field of this type of panel can be given. */
export function propertiesOf(type: string): FieldConfigOptionsRegistry {
  const own = Object.keys(TYPES[type]?.fields ?? {}).map((path) => property(path, true));
  return new FieldConfigOptionsRegistry(() => [...standard(), ...own]);
}

/** What Grafana would pass over in silence. */
export function unknownIn(panel: Panel): string[] {
  const type = TYPES[panel.type];
  if (!type) {
    return [`unknown panel ${panel.type}`];
  }
  const { defaults, overrides } = panel.fieldConfig;
  const { custom, ...given } = defaults;
  const set = [
    ...Object.entries(given),
    ...Object.entries(custom ?? {}).map(([path, value]) => [`custom.${path}`, value] as const),
    ...overrides.flatMap((each) => each.properties.map(({ id, value }) => [id, value] as const)),
  ];
  const { reduceOptions, legend } = panel.options;
  const properties = propertiesOf(panel.type);
  return [
    ...lacking('option', Object.keys(panel.options), (key) => key in type.options),
    ...lacking('property', set.map(([id]) => id), (id) => properties.getIfExists(id)),
    ...lacking('matcher', overrides.map((each) => each.matcher.id), (id) => fieldMatchers.getIfExists(id)),
    ...lacking('transformation', (panel.transformations ?? []).map((each) => each.id), (id) =>
      standardTransformersRegistry.getIfExists(id)),
    ...lacking('reducer', [...(reduceOptions?.calcs ?? []), ...(legend?.calcs ?? [])], (id) =>
      fieldReducers.getIfExists(id)),
    ...lacking('unit', valuesOf(set, 'unit'), (unit) => UNITS.has(unit)),
    ...lacking('colour mode', valuesOf(set, 'color').map((color) => color.mode), (mode) =>
      fieldColorModeRegistry.getIfExists(mode)),
    ...lacking('mapping', valuesOf(set, 'mappings').flatMap((all) => all.map((each: any) => each.type)), (mapping) =>
      Object.values(MappingType).includes(mapping as MappingType)),
  ];
}

const UNITS = new Set(getValueFormats().flatMap((group) => group.submenu!.map((unit) => unit.value)));

function valuesOf(set: Array<readonly [string, any]>, wanted: string): any[] {
  return set.filter(([id]) => id === wanted).map(([, value]) => value);
}

function lacking(kind: string, names: string[], knows: (name: string) => unknown): string[] {
  return [...new Set(names)].filter((name) => !knows(name)).map((name) => `unknown ${kind} ${name}`);
}
