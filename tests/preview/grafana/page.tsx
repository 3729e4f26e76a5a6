// A page: its head, the headings of its rows, its panels, each in Grafana's frame.

import { type GrafanaTheme2, ThemeContext } from '@grafana/data';
import { PanelChrome } from '@grafana/ui';
import { Component, type CSSProperties, type ReactElement, type ReactNode } from 'react';

import type { Box, Sheet, Shown } from './job';
import { OURS } from './own';
import { filled, type Ready } from './prepare';
import { GRAFANAS } from './show';

export interface Whole {
  job: Sheet['panels'][number];
  /** Missing where something of it is unknown. */
  ready?: Ready;
  shown: Shown;
}

/** Notes what a component throws, and says so in its place. */
class Guard extends Component<{ shown: Shown; children: ReactNode }, { error?: Error }> {
  state: { error?: Error } = {};

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  componentDidCatch(error: Error) {
    this.props.shown.faults.push(error.stack ?? error.message);
  }

  render() {
    return this.state.error ? <p>{this.state.error.message}</p> : this.props.children;
  }
}

interface Inside {
  whole: Whole;
  sheet: Sheet;
  width: number;
  height: number;
}

function Body({ whole: { ready, shown, job }, sheet, width, height }: Inside): ReactElement {
  const { type } = job.panel;
  // a tile says itself that it has no data
  if (!ready || (shown.empty && type !== 'stat')) {
    const words = shown.unknown.join(', ') || (ready?.panel.fieldConfig.defaults.noValue ?? 'No data');
    return <p style={{ textAlign: 'center', marginTop: height / 3 }}>{words}</p>;
  }
  const Drawn = GRAFANAS[type] ?? OURS[type];
  return <Drawn {...ready} job={job} sheet={sheet} width={width} height={height} />;
}

const at = ({ left, top, width, height }: Box): CSSProperties => ({ position: 'absolute', left, top, width, height });

function PanelOf({ whole, sheet }: { whole: Whole; sheet: Sheet }): ReactElement {
  const { shown } = whole;
  const { panel, box, variables } = whole.job;
  return (
    <section style={at(box)} data-panel="">
      <Guard shown={shown}>
        <PanelChrome
          title={filled(panel.title, variables)}
          description={panel.description}
          titleItems={shown.by === 'Plumbline' ? <small>not Grafana’s drawing</small> : undefined}
          width={box.width}
          height={box.height}
          padding={panel.type === 'table' ? 'none' : 'md'}
        >
          {(width, height) => (
            <Guard shown={shown}>
              <Body whole={whole} sheet={sheet} width={width} height={height} />
            </Guard>
          )}
        </PanelChrome>
      </Guard>
    </section>
  );
}

export function Page({ sheet, panels, theme }: { sheet: Sheet; panels: Whole[]; theme: GrafanaTheme2 }): ReactElement {
  const style: CSSProperties = {
    position: 'relative', width: sheet.width, height: sheet.height, background: theme.colors.background.canvas,
    color: theme.colors.text.primary, fontFamily: theme.typography.fontFamily,
  };
  return (
    <ThemeContext.Provider value={theme}>
      <main style={style}>
        <header style={{ padding: '6px 12px' }}>
          <b>{sheet.title}</b> <small style={{ float: 'right' }}>{sheet.description}</small>
          <br />
          <small>{sheet.chosen}</small>
        </header>
        {sheet.headings.map(({ title, box }, index) => (
          <b key={index} style={{ ...at(box), lineHeight: `${box.height}px` }}>
            {title}
          </b>
        ))}
        {panels.map((whole, index) => (
          <PanelOf key={index} whole={whole} sheet={sheet} />
        ))}
      </main>
    </ThemeContext.Provider>
  );
}
