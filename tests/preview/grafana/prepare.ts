// A panel's frames made ready: transformed, each field with its configuration. What Grafana does before a panel draws.

import {
  applyFieldOverrides,
  type DataFrame,
  type FieldConfigSource,
  getFieldDisplayName,
  getFieldMatcher,
  type GrafanaTheme2,
  transformDataFrame,
} from '@grafana/data';

import { framesOf } from './frames';
import type { Job, Panel } from './job';
import { propertiesOf } from './known';

export interface Ready {
  panel: Panel;
  frames: DataFrame[];
  unmatched: string[];
}

/** The plug-ins' own defaults: which colours a field has that is given none. */
const COLOURS: Record<string, string> = {
  timeseries: 'palette-classic',
  barchart: 'palette-classic',
  'state-timeline': 'continuous-GrYlRd',
};

/** With what the plug-in of its type adds. Grafana 12.2 renamed `hidden`, and its table migrates what has the old name. */
export function completed(panel: Panel): Panel {
  const { defaults, overrides = [] } = panel.fieldConfig;
  const color = { mode: COLOURS[panel.type] ?? 'thresholds' };
  return {
    ...panel,
    fieldConfig: {
      defaults: { color, ...defaults },
      overrides: overrides.map((each) => ({
        ...each,
        properties: each.properties.map(({ id, value }) =>
          id === 'custom.hidden' ? { id: 'custom.hideFrom', value: { viz: value } } : { id, value },
        ),
      })),
    },
  };
}

export async function prepare(job: Job, theme: GrafanaTheme2): Promise<Ready> {
  const panel = completed(job.panel);
  const asked = framesOf(panel, job.answers, job.step);
  const transformed = await last(transformDataFrame(panel.transformations ?? [], asked));
  const frames = applyFieldOverrides({
    data: transformed,
    fieldConfig: panel.fieldConfig,
    fieldConfigRegistry: propertiesOf(panel.type),
    replaceVariables: (text) => filled(text, job.variables),
    theme,
    timeZone: 'utc',
  });
  return { panel, frames, unmatched: [...unmatchedOverrides(panel.fieldConfig, transformed), ...unsorted(panel, frames)] };
}

/** `$name` and `${name:format}`; what is no variable of the page stays. */
export function filled(text: string, variables: Record<string, string>): string {
  return text.replace(/\$\{(\w+)(?::\w+)?\}|\$(\w+)/g, (all, braced, bare) => variables[braced ?? bare] ?? all);
}

function unmatchedOverrides({ overrides }: FieldConfigSource, frames: DataFrame[]): string[] {
  return overrides
    .filter(({ matcher }) => {
      const matches = getFieldMatcher(matcher);
      return !frames.some((frame) => frame.fields.some((field) => matches(field, frame, frames)));
    })
    .map(({ matcher }) => `${matcher.id} ${matcher.options}`);
}

function unsorted(panel: Panel, frames: DataFrame[]): string[] {
  const names = frames.flatMap((frame) => frame.fields.map((field) => getFieldDisplayName(field, frame, frames)));
  const wanted: string[] = (panel.options.sortBy ?? []).map((each: { displayName: string }) => each.displayName);
  return wanted.filter((name) => !names.includes(name)).map((name) => `sortBy ${name}`);
}

type Transformed = ReturnType<typeof transformDataFrame>;

function last(source: Transformed): Promise<DataFrame[]> {
  return new Promise((resolve, reject) => {
    let latest: DataFrame[] = [];
    source.subscribe({ next: (frames) => (latest = frames), error: reject, complete: () => resolve(latest) });
  });
}
