// What Python hands over (tests/preview/page.py) and what it gets back.

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

/** A rectangle in pixels. */
export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** A page to draw. */
export interface Sheet {
  title: string;
  description: string;
  /** What is chosen of its variables, in words. */
  chosen: string;
  width: number;
  height: number;
  /** Unix milliseconds. */
  from: number;
  to: number;
  headings: Array<{ title: string; box: Box }>;
  panels: Array<Job & { box: Box }>;
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
  /** Whether there is no series, so that `noValue` stands there. */
  empty: boolean;
}

/** What a panel came to when it was drawn. */
export interface Shown extends Made {
  type: string;
  by: 'Grafana' | 'Plumbline';
  /** What was thrown. */
  faults: string[];
  /** What one reads in it. */
  text: string;
  /** Titles and headings that are cut off, words too small to read; "columns", "rows" where a table shows too few. */
  cut: string[];
}
