// What Grafana's code makes of a panel before anything is drawn.

import {
  type FieldDisplay,
  formattedValueToString,
  getFieldDisplayName,
  getFieldDisplayValues,
  type GrafanaTheme2,
} from '@grafana/data';

import type { Job, Made } from './job';
import { unknownIn } from './known';
import { completed, filled, prepare, type Ready } from './prepare';

/** What it is drawn from is missing where something of it is unknown: Grafana throws on that, or passes over it. */
export async function made(job: Job, theme: GrafanaTheme2): Promise<{ made: Made; ready?: Ready }> {
  const { title } = job.panel;
  const unknown = unknownIn(completed(job.panel));
  if (unknown.length) {
    return { made: { title, unknown, unmatched: [], headings: [], rows: [], texts: [], tiles: [], empty: true } };
  }
  const ready = await prepare(job, theme);
  const { panel, frames, unmatched } = ready;
  const [frame] = frames;
  const fields = frame?.fields ?? [];
  const rows = [...Array(frame?.length ?? 0).keys()];
  const isTiles = ['stat', 'bargauge'].includes(panel.type);
  const tiles = isTiles ? figuresOf(ready, job, theme).map(({ display }) => display) : [];
  const words = panel.fieldConfig.defaults.noValue;
  return {
    made: {
      title,
      unknown,
      unmatched,
      headings: fields.map((field) => getFieldDisplayName(field, frame, frames)),
      rows: rows.map((row) => fields.map((field) => field.values[row] ?? null)),
      texts: rows.map((row) => fields.map((field) => formattedValueToString(field.display!(field.values[row])))),
      tiles: tiles.map((display) => [formattedValueToString(display), display.color ?? '']),
      empty: isTiles ? tiles.every(({ text }) => text === words) : !frames.some(({ length }) => length > 0),
    },
    ready,
  };
}

/** The figures of a tile or of bars. Without a series Grafana gives one, whose text is `noValue`. */
export function figuresOf({ panel, frames }: Ready, job: Pick<Job, 'variables'>, theme: GrafanaTheme2): FieldDisplay[] {
  return getFieldDisplayValues({
    fieldConfig: panel.fieldConfig,
    reduceOptions: panel.options.reduceOptions,
    replaceVariables: (text) => filled(text, job.variables),
    theme,
    data: frames,
    sparkline: panel.type === 'stat' && panel.options.graphMode !== 'none',
    timeZone: 'utc',
  });
}
