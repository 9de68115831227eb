/** The switch between the light theme, the dark one and that of the system. */

import { button, replace } from './dom.ts';
import { keepSetting, setting } from './settings.ts';

const THEMES = ['system', 'light', 'dark'] as const;
type Theme = (typeof THEMES)[number];
const SIGNS: Readonly<Record<Theme, string>> = { system: '◐', light: '☀', dark: '☾' };

const chosen = (): Theme => THEMES.find((one) => one === setting('theme')) ?? 'system';

/** Applies the chosen theme; called once before anything is drawn. */
export function applyTheme(theme: Theme = chosen()): void {
  const { dataset } = document.documentElement;
  if (theme === 'system') delete dataset.theme;
  else dataset.theme = theme;
}

export function themeSwitch(): HTMLButtonElement {
  const draw = () => {
    const theme = chosen();
    replace(node, SIGNS[theme]);
    node.title = `Theme: ${theme}`;
    node.setAttribute('aria-label', `Theme: ${theme}. Press for the next one`);
  };
  const node = button(
    '',
    () => {
      const next = THEMES[(THEMES.indexOf(chosen()) + 1) % THEMES.length]!;
      keepSetting('theme', next === 'system' ? undefined : next);
      applyTheme(next);
      draw();
    },
    { class: 'quiet theme' },
  );
  draw();
  return node;
}
