// What Python calls: `await made(jobs)` and, once in a page, `await draw(sheet)`.

import { createTheme, ThemeContext } from '@grafana/data';
import { GlobalStyles } from '@grafana/ui';
import { flushSync } from 'react-dom';
import { createRoot } from 'react-dom/client';

import type { Job, Made, Sheet, Shown } from './job';
import { start } from './known';
import { made } from './made';
import { Page, type Whole } from './page';
import { GRAFANAS } from './show';

const QUIET_MS = 300;
const MOST_MS = 15_000;
const THEME = createTheme({ colors: { mode: 'light' } });

async function madeOf(jobs: Job[]): Promise<Made[]> {
  return (await Promise.all(jobs.map((job) => made(job, THEME)))).map((each) => each.made);
}

async function draw(sheet: Sheet): Promise<Shown[]> {
  const panels: Whole[] = [];
  for (const job of sheet.panels) {
    const { made: known, ready } = await made(job, THEME);
    const { type } = job.panel;
    const by = type in GRAFANAS ? 'Grafana' : 'Plumbline';
    panels.push({ job, ready, shown: { ...known, type, by, faults: [], text: '', cut: [] } });
  }
  await typeface();
  const root = document.body.appendChild(document.createElement('div'));
  const still = settled(root);
  createRoot(root).render(<Page sheet={sheet} panels={panels} theme={THEME} />);
  await still;
  root.querySelectorAll<HTMLElement>('[data-panel]').forEach((element, index) => {
    const { shown } = panels[index];
    shown.text = element.innerText;
    shown.cut = cutIn(element);
  });
  return panels.map(({ shown }) => shown);
}

/** Loads it: a chart that is drawn before would keep another one. */
async function typeface(): Promise<void> {
  const root = createRoot(document.body.appendChild(document.createElement('div')));
  flushSync(() =>
    root.render(
      <ThemeContext.Provider value={THEME}>
        <GlobalStyles />
      </ThemeContext.Provider>,
    ),
  );
  await Promise.all([400, 500].map((weight) => document.fonts.load(`${weight} 14px Inter`)));
}

function cutIn(panel: HTMLElement): string[] {
  const title = [...panel.querySelectorAll<HTMLElement>('h2')].filter(isWide);
  const headings = [...panel.querySelectorAll<HTMLElement>('[role="columnheader"]')].filter(runsOver);
  const tables = [...panel.querySelectorAll<HTMLElement>('[role="grid"]')];
  const small = [...panel.querySelectorAll<HTMLElement>('[style*="font-size"]')].filter(isSmall);
  return [
    ...[...title, ...headings, ...small].map((each) => each.innerText),
    ...tables.filter(isWide).map(() => 'columns'),
    ...tables.filter(hidesRows).map(() => 'rows'),
  ];
}

const isSmall = (element: HTMLElement) => element.innerText !== '' && parseFloat(element.style.fontSize) < 10;

/** No row is in view as a whole, though there is one. */
function hidesRows(table: HTMLElement): boolean {
  const cell = table.querySelector('[role="gridcell"]');
  return cell !== null && cell.getBoundingClientRect().bottom > table.getBoundingClientRect().bottom;
}

const isWide = (element: HTMLElement) => element.scrollWidth > element.clientWidth;

/** To the left or the top as well, which makes nothing wider. */
function runsOver(element: HTMLElement): boolean {
  const range = document.createRange();
  range.selectNodeContents(element);
  const [inner, outer] = [range.getBoundingClientRect(), element.getBoundingClientRect()];
  return inner.left < outer.left || inner.right > outer.right || inner.top < outer.top;
}

/** When nothing has changed in it for a moment: charts measure themselves and draw again. */
function settled(root: HTMLElement): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      watcher.disconnect();
      resolve();
    };
    let timer = setTimeout(done, MOST_MS);
    const last = Date.now() + MOST_MS;
    const watcher = new MutationObserver(() => {
      clearTimeout(timer);
      timer = setTimeout(done, Math.min(QUIET_MS, last - Date.now()));
    });
    watcher.observe(root, { childList: true, subtree: true, attributes: true, characterData: true });
  });
}

start();
Object.assign(window, { draw, made: madeOf });
