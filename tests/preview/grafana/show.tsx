// Panels by the components of @grafana/ui, as the plug-ins call them.

import { dateTime, getDisplayValueAlignmentFactors, type TimeRange, VizOrientation } from '@grafana/data';
import { BarGaugeNamePlacement } from '@grafana/schema';
import { BarGauge, BigValue, TimeSeries, useTheme2, VizRepeater } from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import type { ComponentType, ReactElement } from 'react';

import type { Job, Sheet } from './job';
import { figuresOf } from './made';
import type { Ready } from './prepare';

export interface Drawing extends Ready {
  job: Job;
  sheet: Sheet;
  width: number;
  height: number;
}

function rangeOf(sheet: Sheet): TimeRange {
  const [from, to] = [dateTime(sheet.from), dateTime(sheet.to)];
  return { from, to, raw: { from, to } };
}

function Graph({ panel, frames, sheet, width, height }: Drawing): ReactElement {
  return (
    <TimeSeries
      frames={frames}
      width={width}
      height={height}
      timeRange={rangeOf(sheet)}
      timeZone="utc"
      legend={{ showLegend: true, ...panel.options.legend }}
      options={panel.options}
    />
  );
}

function Table({ panel, frames, sheet, width, height }: Drawing): ReactElement {
  return (
    <TableNG
      data={frames[panel.options.frameIndex ?? 0]}
      width={width}
      height={height}
      fieldConfig={panel.fieldConfig}
      noHeader={!panel.options.showHeader}
      noValue={panel.fieldConfig.defaults.noValue}
      cellHeight={panel.options.cellHeight}
      sortBy={panel.options.sortBy}
      sortByBehavior="initial"
      timeRange={rangeOf(sheet)}
      enableVirtualization={false}
    />
  );
}

function Tile(drawing: Drawing): ReactElement {
  const theme = useTheme2();
  const { options } = drawing.panel;
  const figures = figuresOf(drawing, drawing.job, theme);
  return (
    <VizRepeater
      width={drawing.width}
      height={drawing.height}
      source={drawing.frames}
      getValues={() => figures}
      getAlignmentFactors={getDisplayValueAlignmentFactors}
      itemSpacing={3}
      renderCounter={0}
      autoGrid={true}
      orientation={options.orientation ?? VizOrientation.Auto}
      renderValue={({ value, width, height, alignmentFactors, count }) => (
        <BigValue
          value={value.display}
          count={count}
          sparkline={value.sparkline}
          colorMode={options.colorMode}
          graphMode={options.graphMode}
          justifyMode={options.justifyMode}
          textMode={options.textMode}
          alignmentFactors={alignmentFactors}
          text={options.text}
          width={width}
          height={height}
          theme={theme}
          disableWideLayout={options.wideLayout === false}
        />
      )}
    />
  );
}

function Bars(drawing: Drawing): ReactElement {
  const theme = useTheme2();
  const { options } = drawing.panel;
  const figures = figuresOf(drawing, drawing.job, theme);
  const lying = options.orientation === VizOrientation.Horizontal;
  return (
    <VizRepeater
      width={drawing.width}
      height={drawing.height}
      source={drawing.frames}
      getValues={() => figures}
      getAlignmentFactors={getDisplayValueAlignmentFactors}
      itemSpacing={lying ? 10 : 5}
      minVizHeight={options.minVizHeight ?? 16}
      maxVizHeight={options.maxVizHeight ?? 300}
      minVizWidth={options.minVizWidth ?? 8}
      renderCounter={0}
      orientation={options.orientation}
      renderValue={({ value, width, height, alignmentFactors, orientation }) => (
        <BarGauge
          value={value.display}
          field={value.field}
          display={value.view?.getFieldDisplayProcessor(value.colIndex!)}
          width={width}
          height={height}
          orientation={orientation}
          theme={theme}
          itemSpacing={5}
          lcdCellWidth={12}
          displayMode={options.displayMode}
          showUnfilled={options.showUnfilled}
          valueDisplayMode={options.valueMode}
          namePlacement={options.namePlacement ?? BarGaugeNamePlacement.Auto}
          text={options.text}
          alignmentFactors={alignmentFactors}
        />
      )}
    />
  );
}

/** Type of panel → its component. Stat and bar gauge say themselves that they have no data. */
export const GRAFANAS: Record<string, ComponentType<Drawing>> = {
  timeseries: Graph,
  table: Table,
  stat: Tile,
  bargauge: Bars,
};
