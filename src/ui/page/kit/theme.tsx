import { useState } from 'preact/hooks';
import { keepSetting, LANGUAGE, setting, t } from './language.ts';
import { Button } from './ui.tsx';

const THEMES = [
  ['system', '◐', t`system`],
  ['light', '☀', t`light`],
  ['dark', '☾', t`dark`],
] as const;

const chosen = () => THEMES.find(([name]) => name === setting('theme')) ?? THEMES[0];

/** Applies the chosen theme and the language; called once before anything is drawn. */
export function applyTheme([theme] = chosen()): void {
  const { dataset } = document.documentElement;
  document.documentElement.lang = LANGUAGE;
  if (theme === 'system') delete dataset.theme;
  else dataset.theme = theme;
}

export function ThemeSwitch() {
  const [theme, setTheme] = useState(chosen);
  const [, sign, name] = theme;
  const press = () => {
    const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!;
    keepSetting('theme', next[0] === 'system' ? undefined : next[0]);
    applyTheme(next);
    setTheme(next);
  };
  return (
    <Button
      class="quiet theme"
      title={t`Theme: ${name}`}
      aria-label={t`Theme: ${name}. Press for the next one`}
      onClick={press}
    >
      {sign}
    </Button>
  );
}

/** Named in the other language, for those who do not read this one. */
export function LanguageSwitch() {
  const [other, name] = LANGUAGE === 'en' ? ['zh-CN', '中文'] : ['en', 'English'];
  const press = () => {
    keepSetting('language', other);
    location.reload();
  };
  return (
    <Button class="quiet" lang={other} onClick={press}>
      {name}
    </Button>
  );
}
