// What Python hands over (tests/preview/grafanas.py) and what it gets back.

import type { DataTransformerConfig, FieldConfigSource } from '@grafana/data';

export interface Target {
  refId: string;
  format?: string;
  instant?: boolean;
  range?: boolean;
  legendFormat?: string;
}

/** A panel as the dashboard's JSON has it. */
export interface Panel {
  title: string;
  type: string;
  description?: string;
  targets: Target[];
  transformations?: DataTransformerConfig[];
  /** Its overrides may be missing. */
  fieldConfig: FieldConfigSource;
  options: Record<string, any>;
}

export interface Series {
  metric: Record<string, string>;
  value?: [number, string];
  values?: Array<[number, string]>;
}

/** The data of https://prometheus.io/docs/prometheus/latest/querying/api/#expression-queries. */
export interface Answer {
  resultType: string;
  result: Series[] | [number, string];
}

export interface Job {
  panel: Panel;
  /** One a target, in their order. */
  answers: Answer[];
  variables: Record<string, string>;
  /** Milliseconds between two points. */
  step: number;
}

/** What Grafana makes of a panel. */
export interface Made {
  title: string;
  /** What it does not know, and would pass over in silence. */
  unknown: string[];
  /** Overrides, and columns of the order, that no field bears. */
  unmatched: string[];
  /** Of the first frame: its headings, and its rows as data and as they are written. */
  headings: string[];
  rows: Array<Array<string | number | null>>;
  texts: string[][];
  /** Of tiles and bars: the text of each, and its colour. */
  tiles: Array<[string, string]>;
}
