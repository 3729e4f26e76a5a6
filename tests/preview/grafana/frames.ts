// Prometheus' answers as data frames, as Grafana's data source gives them to a panel.

import { type DataFrame, FieldType, toDataFrame } from '@grafana/data';

import type { Answer, Panel, Series, Target } from './job';

/** Of a panel's answers, one a target. */
export function framesOf(panel: Panel, answers: Answer[], step: number): DataFrame[] {
  const alone = panel.targets.length === 1;
  return panel.targets.flatMap((target, index) => {
    const series = seriesOf(answers[index]);
    return target.format === 'table'
      ? [table(target, series, alone ? 'Value' : `Value #${target.refId}`)]
      : series.map((each) => line(target, each, step));
  });
}

/** A scalar is a series without labels. */
function seriesOf({ resultType, result }: Answer): Series[] {
  return resultType === 'scalar' ? [{ metric: {}, value: result as [number, string] }] : (result as Series[]);
}

/** The time, a column a label in alphabetical order, the value: also without any row. */
function table(target: Target, series: Series[], value: string): DataFrame {
  const labels = [...new Set(series.flatMap((each) => Object.keys(each.metric)))].sort();
  const points = series.map((each) => pointsOf(each).at(-1)!);
  return toDataFrame({
    refId: target.refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: points.map(([at]) => at) },
      ...labels.map((label) => ({
        name: label,
        type: FieldType.string,
        values: series.map((each) => each.metric[label] ?? ''),
      })),
      { name: value, type: FieldType.number, values: points.map(([, figure]) => figure) },
    ],
  });
}

function line(target: Target, series: Series, step: number): DataFrame {
  const points = pointsOf(series);
  return toDataFrame({
    refId: target.refId,
    fields: [
      // with the interval Grafana sees where points are missing, and interrupts the line
      { name: 'Time', type: FieldType.time, config: { interval: step }, values: points.map(([at]) => at) },
      {
        name: 'Value',
        type: FieldType.number,
        labels: series.metric,
        config: { displayNameFromDS: legend(target.legendFormat, series.metric) },
        values: points.map(([, figure]) => figure),
      },
    ],
  });
}

function legend(format: string | undefined, labels: Record<string, string>): string | undefined {
  return format && format !== '__auto'
    ? format.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, label) => labels[label] ?? '')
    : undefined;
}

/** [Unix milliseconds, figure] */
function pointsOf(series: Series): Array<[number, number]> {
  return (series.values ?? [series.value!]).map(([at, text]) => [at * 1000, figureOf(text)]);
}

function figureOf(text: string): number {
  return text === '+Inf' ? Infinity : text === '-Inf' ? -Infinity : Number(text);
}
