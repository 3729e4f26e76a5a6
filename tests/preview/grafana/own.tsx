// Heatmap, state timeline and bar chart: their components are no part of Grafana's Apache-2.0 packages, so these are
// drawn here. Units, colours and words are those of Grafana's fields.

import { type DataFrame, dateTimeFormat, type Field, formattedValueToString, getFieldDisplayName, getValueFormat } from '@grafana/data';
import { useTheme2 } from '@grafana/ui';
import type { ComponentType, ReactElement, ReactNode } from 'react';

import type { Sheet } from './job';
import type { Drawing } from './show';

const BELOW = 22;
const SMALL = 11;

interface Frame {
  drawing: Drawing;
  /** Pixels for the names of the rows. */
  beside: number;
  below?: ReactNode;
  children: (width: number, height: number) => ReactNode;
}

/** What all three share: room for the names on the left, and for an axis below. */
function Chart({ drawing: { width, height }, beside, below, children }: Frame): ReactElement {
  const theme = useTheme2();
  const [inner, high] = [width - beside - 10, height - BELOW - 4];
  return (
    <svg width={width} height={height} fontSize={SMALL} fill={theme.colors.text.secondary}>
      <g transform={`translate(${beside},4)`}>
        {children(inner, high)}
        <g transform={`translate(0,${high + 15})`} textAnchor="middle">
          {below}
        </g>
      </g>
    </svg>
  );
}

const STEPS_S = [10, 30, 60, 300, 900, 1800, 3600, 10800, 21600, 43200, 86400, 604800];

/** The labels of the time's axis, at round moments. */
function times({ from, to }: Sheet, width: number): ReactElement[] {
  const step = 1000 * (STEPS_S.find((each) => (to - from) / (1000 * each) <= width / 90) ?? 2592000);
  const format = step >= 86400_000 ? 'MM-DD' : step >= 60_000 ? 'HH:mm' : 'HH:mm:ss';
  const first = Math.ceil(from / step) * step;
  const last = to - (to - from) * (20 / width);
  return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, index) => first + index * step).map((at) => (
    <text key={at} x={((at - from) / (to - from)) * width}>
      {dateTimeFormat(at, { format, timeZone: 'utc' })}
    </text>
  ));
}

const figuresOf = (frame: DataFrame) => frame.fields.filter((field) => field.type === 'number');
const timesOf = (frame: DataFrame) => frame.fields.find((field) => field.type === 'time')!.values as number[];

/** Where the step before a moment begins, and how wide it is; none before the first. */
function scale({ sheet: { from, to }, job: { step } }: Drawing, width: number) {
  const x = (at: number) => Math.max(0, ((at - from) / (to - from)) * width);
  return { begin: (at: number) => x(at - step), wide: (at: number) => x(at) - x(at - step) };
}

/** Cumulative buckets made plain: (upper edge, moment → how many fell into it and not below). */
function bucketsOf(frames: DataFrame[]): Array<{ edge: number; counts: Map<number, number> }> {
  const sorted = frames
    .map((frame) => ({ frame, edge: edgeOf(figuresOf(frame)[0]) }))
    .sort((a, b) => a.edge - b.edge);
  let below = new Map<number, number>();
  return sorted.map(({ frame, edge }) => {
    const reached = new Map(timesOf(frame).map((at, index) => [at, figuresOf(frame)[0].values[index] as number]));
    const counts = new Map([...reached].map(([at, count]) => [at, Math.max(0, count - (below.get(at) ?? 0))]));
    below = reached;
    return { edge, counts };
  });
}

const edgeOf = (field: Field) => (field.labels!.le === '+Inf' ? Infinity : Number(field.labels!.le));

function Heatmap(drawing: Drawing): ReactElement {
  const theme = useTheme2();
  const { panel, frames, sheet } = drawing;
  const all = bucketsOf(frames);
  const lived = all.flatMap(({ counts }, index) => ([...counts.values()].some((count) => count > 0) ? [index] : []));
  const rows = all.slice(Math.max(0, lived[0] - 1), lived[lived.length - 1] + 2);
  const most = Math.max(...rows.flatMap(({ counts }) => [...counts.values()]));
  const { color, yAxis } = panel.options;
  const fill = theme.visualization.getColorByName(color.fill);
  const written = getValueFormat(yAxis.unit);
  const every = Math.max(1, Math.ceil(rows.length / 8));
  return (
    <Chart drawing={drawing} beside={56} below={times(sheet, drawing.width - 66)}>
      {(width, height) => {
        const { begin, wide } = scale(drawing, width);
        const high = height / rows.length;
        return rows.map(({ edge, counts }, index) => {
          const y = height - (index + 1) * high;
          return (
            <g key={edge}>
              {[...counts].map(([at, count]) => (
                <rect key={at} x={begin(at)} y={y} width={wide(at)} height={high} fill={fill}
                  opacity={(count / most) ** color.exponent} />
              ))}
              {index % every === 0 && (
                <text x={-6} y={y + 4} textAnchor="end">
                  {edge === Infinity ? '∞' : formattedValueToString(written(edge))}
                </text>
              )}
            </g>
          );
        });
      }}
    </Chart>
  );
}

function Timeline(drawing: Drawing): ReactElement {
  const { frames, sheet, panel } = drawing;
  const fields = frames.flatMap((frame) => figuresOf(frame).map((field) => ({ field, frame })));
  const beside = 0.25 * drawing.width;
  return (
    <Chart drawing={drawing} beside={beside} below={times(sheet, drawing.width - beside - 10)}>
      {(width, height) => {
        const { begin, wide } = scale(drawing, width);
        const high = height / fields.length;
        return fields.map(({ field, frame }, row) => (
          <g key={row}>
            {timesOf(frame).map((at, index) => (
              <rect key={at} x={begin(at)} y={(row + 0.5 - panel.options.rowHeight / 2) * high} width={wide(at) + 0.5}
                height={high * panel.options.rowHeight} fill={field.display!(field.values[index]).color} />
            ))}
            <text x={-6} y={(row + 0.5) * high + 4} textAnchor="end">
              {getFieldDisplayName(field, frame, frames)}
            </text>
          </g>
        ));
      }}
    </Chart>
  );
}

/** Lying bars, one a row of the table, its columns stacked. */
function BarChart(drawing: Drawing): ReactElement {
  const theme = useTheme2();
  const { panel, frames } = drawing;
  const [frame] = frames;
  const category = frame.fields.find((field) => field.name === panel.options.xField)!;
  const parts = figuresOf(frame);
  const ends = category.values.map((_, row) => parts.reduce((sum, part) => sum + (part.values[row] || 0), 0));
  const most = Math.max(...ends) * 1.15;
  const palette = (part: Field, row: number) => part.display!(part.values[row]).color;
  const legend = parts.map((part, index) => (
    <g key={part.name} transform={`translate(${index * 90},0)`} textAnchor="start">
      <rect width={10} height={10} y={-9} fill={palette(part, 0)} />
      <text x={14}>{getFieldDisplayName(part, frame, frames)}</text>
    </g>
  ));
  return (
    <Chart drawing={drawing} beside={0.25 * drawing.width} below={legend}>
      {(width, height) => {
        const high = height / ends.length;
        return ends.map((end, row) => {
          let left = 0;
          return (
            <g key={row}>
              {parts.map((part) => {
                const wide = ((part.values[row] || 0) / most) * width;
                left += wide;
                return (
                  <rect key={part.name} x={left - wide} y={(row + 0.15) * high} width={wide} height={0.7 * high}
                    fill={palette(part, row)} />
                );
              })}
              <text x={left + 6} y={(row + 0.5) * high + 4} fill={theme.colors.text.primary}>
                {formattedValueToString(parts[0].display!(end))}
              </text>
              <text x={-6} y={(row + 0.5) * high + 4} textAnchor="end">
                {category.values[row]}
              </text>
            </g>
          );
        });
      }}
    </Chart>
  );
}

/** Type of panel → its drawing. */
export const OURS: Record<string, ComponentType<Drawing>> = {
  heatmap: Heatmap,
  'state-timeline': Timeline,
  barchart: BarChart,
};
