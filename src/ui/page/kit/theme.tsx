/** The switch between the light theme, the dark one and that of the system. */

import { useState } from 'preact/hooks';
import { keepSetting, setting } from './settings.ts';
import { Button } from './ui.tsx';

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

export function ThemeSwitch() {
  const [theme, setTheme] = useState(chosen);
  const press = () => {
    const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!;
    keepSetting('theme', next === 'system' ? undefined : next);
    applyTheme(next);
    setTheme(next);
  };
  return (
    <Button
      class="quiet theme"
      title={`Theme: ${theme}`}
      aria-label={`Theme: ${theme}. Press for the next one`}
      onClick={press}
    >
      {SIGNS[theme]}
    </Button>
  );
}
