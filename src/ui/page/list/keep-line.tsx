/** The line above the list: how long exchanges are kept, and where; a button switches recording on. */

import { useRef } from 'preact/hooks';
import type { Info, RecordingRequest } from '../../api/api.ts';
import { act } from '../kit/copy.tsx';
import { json } from '../kit/fetching.ts';
import { bytes, several } from '../kit/format.ts';
import { LANGUAGE, rich, t } from '../kit/language.ts';
import type { PageProps } from '../kit/places.ts';
import { Button, type Child } from '../kit/ui.tsx';

export function KeepLine({ info, switched }: Omit<PageProps, 'route'>) {
  const { mode, configured, may_switch } = info.samples;
  const line = useRef<HTMLElement>(null);
  const to = (next: Info['samples']['mode'], text: string) =>
    mode !== next && (
      <Button
        onClick={() =>
          void act(async () => {
            const body: RecordingRequest = { mode: next };
            switched(await json<Info>('/recording', { method: 'POST', body }));
            // The button that had the focus is gone.
            line.current?.querySelector('button')?.focus();
          })
        }
      >
        {text}
      </Button>
    );
  return (
    <section class="keepline" aria-label={t`What is kept`} data-mode={mode} ref={line}>
      <i class="dot" />
      <p>
        <b>{title(mode)}</b> {details(info)}
      </p>
      {may_switch && (
        <span class="switches">
          {to('all', t`Record all exchanges`)}
          {configured !== 'all' &&
            to(configured, configured === 'off' ? t`Stop recording` : t`Record failures only`)}
        </span>
      )}
    </section>
  );
}

function title(mode: Info['samples']['mode']): string {
  if (mode === 'off') return t`Recording is off.`;
  return mode === 'all' ? t`All exchanges are recorded.` : t`Only failed exchanges are recorded.`;
}

function details({ samples }: Info): Child {
  const { mode, configured, dir, recent, by_route, redact } = samples;
  const kept = (days: number, more = '') => [
    dir === undefined ? t`They are kept` : rich`They are kept in ${<code>{dir}</code>}`,
    days > 0 && t` for ${several(days, 'day')}`,
    more,
  ];
  const sentences: Child[] = [
    mode === 'all' && kept(samples.keep_days, failedToo(samples)),
    mode === 'errors' && kept(samples.keep_failed_days),
    mode !== 'all' &&
      recent !== null &&
      (mode === 'off'
        ? t`The last ${recent.count} exchanges are in memory only (at most ${bytes(recent.bytes)}) and are gone when hopgate stops`
        : t`The last ${recent.count} others are in memory only (at most ${bytes(recent.bytes)}) and are gone when hopgate stops`),
    t`Keys are masked`,
    redact.length > 0 && t`On disk and here, ${redact.join(' and ')} are blanked`,
    by_route && t`Some routes have a setting of their own`,
    mode !== configured &&
      rich`This holds until hopgate restarts or loads its configuration again, which says ${<code>{`samples.mode: ${configured}`}</code>}`,
  ];
  return sentences
    .filter((one) => one !== false)
    .map((one, i) => (
      <span key={i}>
        {i > 0 && LANGUAGE === 'en' && ' '}
        {rich`${one}.`}
      </span>
    ));
}

const failedToo = ({ keep_days, keep_failed_days }: Info['samples']): string => {
  if (keep_failed_days === keep_days) return '';
  return keep_failed_days === 0
    ? t`, failed ones for good`
    : t`, failed ones for ${several(keep_failed_days, 'day')}`;
};
