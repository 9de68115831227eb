/** One key: its settings as a form, whose fields become the members of the admin API; a new secret, shown once; what can be done with it. */

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { KeyBudget, KeySettings, OwnedBudgetReport } from '../../../admin/api.ts';
import { act, announce, CopyButton } from '../kit/copy.tsx';
import { Refused } from '../kit/fetching.ts';
import { Ask, Field, Form, Options, type Question, Select, Word } from '../kit/form.tsx';
import { count, localTime, several, short, usdInColumn } from '../kit/format.ts';
import { useLoad } from '../kit/hooks.ts';
import { listed, t } from '../kit/language.ts';
import { adminRoute, go, hashOf } from '../kit/route.ts';
import { Button, Facts, PageFrame, State, When } from '../kit/ui.tsx';
import {
  changeKey,
  createKey,
  getAdmin,
  getReport,
  type KeyView,
  MAX_BUDGETS,
  revokeKey,
  rotateKey,
} from './api.ts';
import { BudgetLine } from './budgets.tsx';

/** Secrets that were just issued, until their page is left. */
const issued = new Map<string, string>();

const GRACES = [
  ['0', t`not at all`],
  ['3600', t`for 1 hour`],
  ['86400', t`for 24 hours`],
  ['604800', t`for 7 days`],
] as const;

const AllKeys = () => <a href="#/keys">{t`Keys`}</a>;

interface SettingsFormProps {
  readonly of: KeySettings;
  readonly does: string | undefined;
  readonly save: (fields: Readonly<Record<string, unknown>>) => Promise<void>;
}

const SettingsForm = ({ of, does, save }: SettingsFormProps) => (
  <Form
    class="key-form"
    does={does}
    run={async (data) => {
      try {
        await save(readFields(data));
      } catch (thrown) {
        if (!(thrown instanceof Refused) || thrown.code !== 'version_mismatch') throw thrown;
        throw new Error(
          t`Another administrator has changed this key meanwhile. Reload the page to see the change.`,
        );
      }
    }}
  >
    <KeyFields of={of} />
  </Form>
);

export function NewKey() {
  // Who has no admin key is asked for it before the form is filled in.
  useLoad((signal) => getAdmin('/keys', { limit: 1 }, signal), []);
  useLayoutEffect(() => document.querySelector<HTMLElement>('.key-form input')?.focus(), []);
  return (
    <PageFrame
      title={t`New key`}
      about={[t`All of this can be changed later. `, <AllKeys key="all" />]}
    >
      <div class="key-grid">
        <section class="panel">
          <SettingsForm
            of={{ name: '' }}
            does={t`Create key`}
            save={async (fields) => {
              const made = await createKey(fields);
              issued.set(made.id, made.key);
              go(adminRoute('keys', made.id), true);
            }}
          />
        </section>
      </div>
    </PageFrame>
  );
}

export function KeyDetail({ id }: { id: string }) {
  const loaded = useLoad(
    async (signal) => {
      const [key, usage, budgets] = await Promise.all([
        getAdmin('/keys/:id', { id }, signal),
        getReport('/usage', { by: 'model', from: '30d', key: id, limit: 8 }, signal),
        getAdmin('/budgets', { limit: MAX_BUDGETS }, signal),
      ]);
      const own = budgets.data.filter((budget) => budget.key === id || isShared(budget, key));
      return { key, usage: usage.data, budgets: own };
    },
    [id],
  );
  const [secret, setSecret] = useState(issued.get(id));
  const [question, setQuestion] = useState<Question>();
  useLayoutEffect(() => () => void issued.delete(id), [id]);
  const { data: found } = loaded;
  const name = found?.key.name;
  useLayoutEffect(() => {
    if (name !== undefined) document.title = `${name} · hopgate`;
  }, [name]);
  if (found === undefined) {
    return <PageFrame title={t`Key`} about={<AllKeys />} loaded={loaded} />;
  }
  const { key, usage, budgets } = found;
  const [state, tone] = STATES[stateOf(key)];
  const changeable = key.source === 'admin' && key.revoked === undefined;
  const done = (text: string) => {
    announce(text);
    loaded.reload();
  };
  const block = (blocked: boolean) =>
    act(async () => {
      await changeKey(key, { blocked });
      done(blocked ? t`The key is blocked.` : t`The key works again.`);
    });
  const rotate: Question = {
    title: t`Rotate the key ${key.name}?`,
    does: t`Rotate`,
    children: (
      <>
        <p>{t`It gets a new secret, which is shown once. Its limits, its budgets and what was spent stay.`}</p>
        <label for="grace">{t`The old secret still works `}</label>
        <Select id="grace" name="grace" first="86400" all={GRACES} />
      </>
    ),
    async run(data) {
      const { key: next } = await rotateKey(key, Number(data.get('grace')));
      setSecret(next);
      loaded.reload();
    },
  };
  const revoke: Question = {
    title: t`Revoke the key ${key.name}?`,
    does: t`Revoke`,
    dangerous: true,
    children: (
      <p>{t`It never works again. To stop it for a while, block it. What was spent stays on record.`}</p>
    ),
    async run() {
      await revokeKey(key);
      done(t`The key is revoked.`);
    },
  };
  return (
    <PageFrame
      title={key.name}
      about={[<AllKeys key="all" />, ' / ', <code key="id">{key.id}</code>]}
      loaded={loaded}
    >
      {question && <Ask {...question} close={() => setQuestion(undefined)} />}
      {secret !== undefined && <Secret secret={secret} hide={() => setSecret(undefined)} />}
      <div class="key-grid">
        <section class="panel" aria-label={t`Settings`}>
          {!changeable && (
            <p class="soft">
              {key.source === 'configuration'
                ? t`This key is in the configuration file. Change it there; the gateway loads the change without a restart.`
                : t`This key was revoked and never works again.`}
            </p>
          )}
          <fieldset class="settings" disabled={!changeable}>
            <SettingsForm
              key={key.version}
              of={key}
              does={changeable ? t`Save` : undefined}
              save={async (fields) => {
                await changeKey(key, fields);
                done(t`Saved.`);
              }}
            />
          </fieldset>
        </section>
        <div class="key-side">
          <section class="panel">
            <h2>{t`State`}</h2>
            <p>
              <State tone={tone}>{state}</State>
            </p>
            <KeyFacts {...key} />
            {changeable && (
              <div class="key-actions">
                <Button onClick={() => setQuestion(rotate)}>{t`Rotate`}</Button>
                <Button onClick={() => void block(key.blocked !== true)}>
                  {key.blocked === true ? t`Unblock` : t`Block`}
                </Button>
                <Button class="danger" onClick={() => setQuestion(revoke)}>{t`Revoke`}</Button>
              </div>
            )}
          </section>
          {budgets.length > 0 && (
            <section class="panel">
              <h2>{t`Budgets`}</h2>
              {budgets.map((budget) => (
                <>
                  {budget.key === null && <p class="soft">{t`${budget.name} (shared)`}</p>}
                  <BudgetLine budget={budget} />
                </>
              ))}
            </section>
          )}
          <section class="panel">
            <h2>{t`Last 30 days`}</h2>
            {usage.length === 0 && <p class="soft">{t`Nothing was used.`}</p>}
            <Facts
              class="fact-list"
              items={usage.map(({ name: model, cost_usd, tries }) => [
                model || t`(no model)`,
                listed([usdInColumn(cost_usd), several(tries, 'attempt', 'attempts')]),
              ])}
            />
            <p>
              <a
                href={hashOf(adminRoute('usage', '', { by: 'model', key: key.id }))}
              >{t`Usage over time`}</a>
            </p>
          </section>
        </div>
      </div>
    </PageFrame>
  );
}

/** A shared budget counts for every key that has its labels. */
const isShared = (
  { key: owner, labels }: OwnedBudgetReport,
  { labels: own = {} }: KeyView,
): boolean =>
  owner === null && Object.entries(labels ?? {}).every(([label, value]) => own[label] === value);

const Secret = ({ secret, hide }: { secret: string; hide: () => void }) => (
  <section class="secret" aria-label={t`The new key`}>
    <h2>{t`Copy this key now`}</h2>
    <p>{t`It is shown this once. The gateway keeps only a digest of it.`}</p>
    <div class="snippet">
      <code class="secret-text">{secret}</code>
      <CopyButton class="primary" read={() => secret}>{t`Copy`}</CopyButton>
    </div>
    <Button class="tiny" onClick={hide}>{t`I have it`}</Button>
  </section>
);

function KeyFacts({ id, source, expires, created, updated, revoked, secrets = [] }: KeyView) {
  const moment = (name: string, iso: string | null | undefined) =>
    iso != null && ([name, <When key={name} iso={iso} />] as const);
  const changes = <a href={hashOf(adminRoute('audit', '', { key: id }))}>{t`its changes`}</a>;
  return (
    <Facts
      class="fact-list"
      items={[
        moment(t`Expires`, expires),
        moment(t`Created`, created),
        updated !== created && moment(t`Changed`, updated),
        moment(t`Revoked`, revoked),
        ...secrets.map(({ until }) => moment(t`Old secret ends`, until)),
        source === 'admin' && [t`Audit`, changes],
      ]}
    />
  );
}

export const STATES = {
  revoked: [t`revoked`, ''],
  blocked: [t`blocked`, ''],
  expired: [t`expired`, 'bad'],
  soon: [t`expires soon`, 'warn'],
  active: [t`active`, 'ok'],
} as const;

export function stateOf(key: KeyView, now = Date.now()): keyof typeof STATES {
  if (key.revoked !== undefined) return 'revoked';
  if (key.blocked === true) return 'blocked';
  const left = key.expires === undefined ? undefined : Date.parse(key.expires) - now;
  if (left === undefined || left >= 7 * 86_400_000) return 'active';
  return left <= 0 ? 'expired' : 'soon';
}

/** Name, title in forms and lists, words in the table of keys. */
export const LIMITS = [
  ['requests_per_minute', t`Requests a minute`, (n: number) => t`${short(n)} requests/min`],
  ['tokens_per_minute', t`Tokens a minute`, (n: number) => t`${short(n)} tokens/min`],
  ['concurrent', t`Requests at the same time`, (n: number) => t`${count(n)} at a time`],
] as const;

const MODELS = [
  'models',
  t`Models`,
  'glm/*, claude-*',
  t`Names as clients send them, or provider/model. Empty: all.`,
] as const;
const FURTHER = [
  ['tools', t`Server tools`, 'web_search', t`Empty: all.`],
  ['routes', t`Routes`, 'cheap, eu-*', t`Empty: all.`],
  ['spaces', t`Memory spaces`, 'team-*', t`Empty: all.`],
] as const;
const LISTS = [MODELS, ...FURTHER];

const PERIODS = [
  ['minute', t`minute`],
  ['hour', t`hour`],
  ['day', t`day`],
  ['week', t`week`],
  ['month', t`month`],
  ['total', t`in all`],
] as const;
/** In the order in which new budgets take them. */
const FREE = ['month', 'day', 'week', 'hour', 'total', 'minute'] as const;

function KeyFields({ of }: { of: KeySettings }) {
  const expires = of.expires && localTime(Date.parse(of.expires));
  const list = ([name, title, placeholder, hint]: (typeof LISTS)[number]) => (
    <Field label={title} hint={hint} key={name}>
      <Word name={name} placeholder={placeholder} value={of[name]?.join(', ')} />
    </Field>
  );
  return (
    <div class="fields">
      <Field label={t`Name`} hint={t`For people: who or what uses it.`}>
        <Word name="name" required maxlength={200} value={of.name} />
      </Field>
      <Field label={t`Labels`} hint={t`Budgets choose keys by them, and usage is summed by them.`}>
        <Word name="labels" placeholder="team=web, env=prod" value={labelsText(of.labels ?? {})} />
      </Field>
      {list(MODELS)}
      <Field label={t`Expires`} hint={t`Empty: never.`}>
        <Word name="expires" type="datetime-local" value={expires} />
      </Field>
      <fieldset class="row-of-fields">
        <legend>{t`Limits`}</legend>
        {LIMITS.map(([name, title]) => (
          <Field label={title} key={name}>
            <Word
              name={name}
              type="number"
              min={1}
              step={1}
              placeholder={t`no limit`}
              value={String(of.limits?.[name] ?? '')}
            />
          </Field>
        ))}
      </fieldset>
      <BudgetRows first={of.budgets ?? []} />
      <details open={FURTHER.some(([name]) => (of[name]?.length ?? 0) > 0)}>
        <summary>{t`Tools, routes and memory spaces`}</summary>
        <div class="fields">{FURTHER.map(list)}</div>
      </details>
    </div>
  );
}

/** What is typed; what is empty is null, so that a change takes it away. @throws Error with a message for people */
function readFields(data: FormData): Readonly<Record<string, unknown>> {
  const text = (name: string) => String(data.get(name) ?? '').trim();
  const given = LIMITS.filter(([name]) => text(name) !== '');
  return {
    name: text('name'),
    labels: readLabels(text('labels')),
    expires: text('expires') === '' ? null : new Date(text('expires')).toISOString(),
    limits: Object.fromEntries(given.map(([name]) => [name, Number(text(name))])),
    budgets: readBudgets(data),
    ...Object.fromEntries(LISTS.map(([name]) => [name, readList(text(name))])),
  };
}

const readBudgets = (data: FormData): readonly object[] =>
  data.getAll('usd').map((usd, i) => {
    const text = (name: string) => String(data.getAll(name)[i] ?? '').trim();
    return {
      ...(JSON.parse(text('kept')) as object),
      usd: Number(usd),
      per: text('per'),
      over: text('over') || 'refuse',
      warn: (readList(text('warn')) ?? []).map((share) => Number(share) / 100),
      time_zone: text('time_zone') || 'UTC',
    };
  });

const labelsText = (labels: Readonly<Record<string, string>>): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(', ');

function readLabels(text: string): Readonly<Record<string, string>> {
  const parts = text.split(',').filter((part) => part.trim() !== '');
  return Object.fromEntries(
    parts.map((part) => {
      const [name = '', value = ''] = part.split(/=(.*)/s).map((side) => side.trim());
      if (name === '' || value === '') {
        throw new Error(t`Labels: “${part.trim()}” is no label. Write name=value.`);
      }
      return [name, value];
    }),
  );
}

function readList(text: string): readonly string[] | null {
  const all = text
    .split(/[,\n]/)
    .map((part) => part.trim())
    .filter((part) => part !== '');
  return all.length === 0 ? null : all;
}

interface Row {
  readonly id: number;
  readonly budget: Partial<KeyBudget>;
}

function BudgetRows({ first }: { first: readonly KeyBudget[] }) {
  const box = useRef<HTMLFieldSetElement>(null);
  const [rows, setRows] = useState<readonly Row[]>(first.map((budget, id) => ({ id, budget })));
  /** Budgets without a name differ by their period. */
  const add = () => {
    const selects = box.current!.querySelectorAll<HTMLSelectElement>('select[name=per]');
    const taken = [...selects].map(({ value }) => value);
    const per = FREE.find((one) => !taken.includes(one)) ?? 'month';
    setRows([...rows, { id: Date.now(), budget: { per } }]);
  };
  const remove = (id: number) => {
    setRows(rows.filter((row) => row.id !== id));
    box.current!.querySelector<HTMLElement>('.another')?.focus();
  };
  return (
    <fieldset class="budgets-field" ref={box}>
      <legend>{t`Budgets`}</legend>
      {rows.length === 0 && <p class="soft">{t`This key has no budget of its own.`}</p>}
      <div class="budget-rows">
        {rows.map(({ id, budget }) => (
          <BudgetRow key={id} budget={budget} remove={() => remove(id)} />
        ))}
      </div>
      <Button class="another" onClick={add}>{t`Add a budget`}</Button>
      <datalist id="over-choices">
        <Options all={['refuse', 'warn'].map((over) => [over, ''] as const)} />
      </datalist>
      <small>{t`When the amount is spent: refuse, warn, or the name of a route to something cheaper.`}</small>
    </fieldset>
  );
}

function BudgetRow({ budget, remove }: { budget: Partial<KeyBudget>; remove: () => void }) {
  const { name, webhook, usd, per, over = 'refuse', warn = [0.5, 0.8], time_zone = 'UTC' } = budget;
  return (
    <div class="budget-row" role="group" aria-label={t`Budget`}>
      <input type="hidden" name="kept" value={JSON.stringify({ name, webhook })} />
      <Field label={t`USD`}>
        <Word
          name="usd"
          type="number"
          min={0}
          step="any"
          required
          autofocus={usd === undefined}
          value={String(usd ?? '')}
        />
      </Field>
      <Field label={t`per`}>
        <Select name="per" first={per} all={PERIODS} />
      </Field>
      <Field label={t`then`}>
        <Word name="over" placeholder="refuse" list="over-choices" value={over} />
      </Field>
      <Field label={t`warn at %`}>
        <Word
          name="warn"
          placeholder="50, 80"
          value={warn.map((share) => share * 100).join(', ')}
        />
      </Field>
      <Field label={t`time zone`}>
        <Word name="time_zone" placeholder="UTC" value={time_zone} />
      </Field>
      <Button class="tiny" aria-label={t`Remove this budget`} onClick={remove}>{t`Remove`}</Button>
    </div>
  );
}
