/** Searches the smallest request that still fails, and shows the search while it runs. */

import { shownAt } from '../../../lib/json/pointer.ts';
import type { BisectProbe, BisectResult, JobEvent } from '../../api/api.ts';
import type { ViewProps } from '../exchange/stages.tsx';
import { JsonTree } from '../kit/code.tsx';
import { CopyButton } from '../kit/copy.tsx';
import { Field } from '../kit/form.tsx';
import { bytes, count, percent } from '../kit/format.ts';
import { rich, said, t } from '../kit/language.ts';
import { exchangeLink, hashOf } from '../kit/route.ts';
import { Table } from '../kit/table.tsx';
import { Facts, Soft } from '../kit/ui.tsx';
import { JobTab } from './job-tab.tsx';

export function BisectTab(props: ViewProps) {
  const { info } = props;
  const { row } = props.detail;
  const fine = row.error === '' && row.status < 400 && row.state === 'done';
  return (
    <JobTab
      {...props}
      kind="bisect"
      label={t`Bisect`}
      lead={rich`Sends parts of this request to find the smallest one that still fails in the same way. Every request goes to the vendor and is billed as usual. 
        ${<a href={hashOf({ name: 'list', query: { made: 'bisect' } })}>{t`What bisections have found`}</a>}`}
      asks
      instead={
        fine
          ? t`This exchange did not fail, so there is nothing to look for. Open this to look for a failure that comes and goes.`
          : undefined
      }
      request={(choice, form) => ({
        ...choice,
        budget: Number(form.get('budget')) || undefined,
      })}
      progress={({ events, running }, total) => {
        const probes = probesOf(events);
        const last = probes.at(-1);
        return (
          <>
            {t`${count(probes.length)} of at most ${count(total)} requests`}
            {last && t`, smallest that fails ${bytes(last.best)}`}
            {running && last && <Soft>{t` leaving out ${said(last.phase)}`}</Soft>}
          </>
        );
      }}
      found={({ events, end }) => {
        const probes = probesOf(events);
        return (
          <>
            {events.map(
              (event) =>
                event.type === 'note' && (
                  <p class="soft" key={event.text}>
                    {said(event.text)}
                  </p>
                ),
            )}
            {end?.result && 'cause' in end.result && <Outcome {...end.result} />}
            {probes.length > 0 && <ProbeLog probes={probes} />}
          </>
        );
      }}
    >
      <Field label={t`Request limit`}>
        <input
          type="number"
          name="budget"
          min={1}
          max={info.limits.budget}
          defaultValue={String(Math.min(20, info.limits.budget))}
        />
      </Field>
    </JobTab>
  );
}

const probesOf = (events: readonly JobEvent[]): readonly BisectProbe[] =>
  events.flatMap((event) => (event.type === 'probe' ? [event.probe] : []));

const RESULTS = {
  minimal: t`Nothing more can be left out`,
  partial: t`Stopped before the smallest was found: run it again to continue`,
  'does-not-fail': t`It no longer fails`,
} as const;

function Outcome(found: BisectResult) {
  const { cause, failure, failure_rate: rate, minimal, probes, result, samples, words } = found;
  const sample = (id: string | null, text: string) =>
    id !== null && (
      <a class="button" href={exchangeLink(id, 'messages')}>
        {text}
      </a>
    );
  const text = JSON.stringify(minimal, null, 2);
  return (
    <div class="found" data-result={result}>
      <p class="words">{said(words)}</p>
      <Facts
        class="facts"
        items={[
          [t`Result`, RESULTS[result]],
          failure !== null && [
            t`Fails with`,
            [failure.kind, failure.message].filter(Boolean).join(': '),
          ],
          rate < 1 && rate > 0 && [t`How often`, percent(rate)],
          [t`Requests`, count(probes)],
          cause !== null && [t`At`, <code key="at">{cause.at || '/'}</code>],
          cause !== null &&
            cause.enough < cause.bytes && [
              t`Needed to fail`,
              t`${bytes(cause.enough)} of ${bytes(cause.bytes)}`,
            ],
        ]}
      />
      <p class="buttons">
        {sample(samples.minimal, t`The smallest that fails`)}
        {sample(samples.passing, t`The nearest that passes`)}
        <CopyButton class="button" read={() => text}>{t`Copy the smallest`}</CopyButton>
      </p>
      {cause !== null && (
        <section class="matters">
          <h3>{t`The bytes that matter`}</h3>
          <pre class="answer-text" tabIndex={0} dir="auto">
            {shownAt(minimal, cause.in_minimal)}
          </pre>
        </section>
      )}
      <details open={text.length < 5000}>
        <summary>{t`The smallest request that fails`}</summary>
        <JsonTree
          value={minimal}
          depth={3}
          marks={new Map(cause === null ? [] : [[cause.in_minimal, 'this']])}
        />
      </details>
    </div>
  );
}

const VERDICTS = { same: t`fails`, passes: t`passes`, other: t`fails differently` } as const;

const ProbeLog = ({ probes }: { probes: readonly BisectProbe[] }) => (
  <details class="probelog">
    <summary>{t`All requests as a table`}</summary>
    <Table
      rows={probes}
      columns={[
        ['#', ({ spent }) => spent, 'num'],
        [t`Leaving out`, ({ phase }) => said(phase)],
        [t`Result`, ({ verdict }) => VERDICTS[verdict]],
        [t`Size`, (probe) => bytes(probe.bytes), 'num'],
        [t`Smallest so far`, ({ best }) => bytes(best), 'num'],
      ]}
    />
  </details>
);
