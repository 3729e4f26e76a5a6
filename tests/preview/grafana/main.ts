// Jobs on standard input, what Grafana makes of each on standard output; both JSON.

import './surroundings';

import {
  createTheme,
  type DataFrame,
  formattedValueToString,
  getFieldDisplayName,
  getFieldDisplayValues,
  type GrafanaTheme2,
} from '@grafana/data';
import { readFileSync } from 'fs';

import type { Job, Made, Panel } from './job';
import { start, unknownIn } from './known';
import { completed, prepare } from './prepare';

async function made(job: Job): Promise<Made> {
  const unknown = unknownIn(completed(job.panel));
  const { title } = job.panel;
  if (unknown.length) {
    // Grafana throws on some of them
    return { title, unknown, unmatched: [], headings: [], rows: [], texts: [], tiles: [] };
  }
  const theme = createTheme({ colors: { mode: 'light' } });
  const { panel, frames, unmatched } = await prepare(job, theme);
  const [frame] = frames;
  const fields = frame?.fields ?? [];
  const rows = [...Array(frame?.length ?? 0).keys()];
  return {
    title,
    unknown,
    unmatched,
    headings: fields.map((field) => getFieldDisplayName(field, frame, frames)),
    rows: rows.map((row) => fields.map((field) => field.values[row] ?? null)),
    texts: rows.map((row) => fields.map((field) => formattedValueToString(field.display!(field.values[row])))),
    tiles: ['stat', 'bargauge'].includes(panel.type) ? tilesOf(panel, frames, theme) : [],
  };
}

function tilesOf(panel: Panel, data: DataFrame[], theme: GrafanaTheme2): Array<[string, string]> {
  const { reduceOptions } = panel.options;
  const replaceVariables = (text: string) => text;
  const values = getFieldDisplayValues({ fieldConfig: panel.fieldConfig, reduceOptions, replaceVariables, theme, data });
  return values.map(({ display }) => [formattedValueToString(display), display.color ?? '']);
}

start();
const jobs: Job[] = JSON.parse(readFileSync(0, 'utf8'));
Promise.all(jobs.map(made)).then((all) => process.stdout.write(JSON.stringify(all)));
