/** One key: its settings as a form, a new secret shown once, and what can be done with it. */

import { useLayoutEffect, useState } from 'preact/hooks';
import type { KeySettings, OwnedBudgetReport } from '../../../admin/api.ts';
import { act, announce, CopyButton } from '../kit/copy.tsx';
import { Refused } from '../kit/fetching.ts';
import { Ask, Form, type Question, Select } from '../kit/form.tsx';
import { count, several, usd } from '../kit/format.ts';
import { useLoad } from '../kit/hooks.ts';
import { listed, t } from '../kit/language.ts';
import { adminRoute, go, hashOf } from '../kit/route.ts';
import { Button, Facts, State, When } from '../kit/ui.tsx';
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
import { BudgetLine, periodText } from './budgets.tsx';
import { KeyFields, LIMITS, labelsText, readFields, STATES, stateOf } from './key-fields.tsx';
import { PageFrame } from './page-frame.tsx';

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
  readonly does: string;
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
    return (
      <PageFrame title={t`Key`} about={<AllKeys />} loaded={loaded}>
        {null}
      </PageFrame>
    );
  }
  const { key, usage, budgets } = found;
  const [state, tone] = STATES[stateOf(key)];
  const changeable = key.source === 'admin' && key.revoked === undefined;
  const block = (blocked: boolean) =>
    act(async () => {
      await changeKey(key, { blocked });
      announce(blocked ? t`The key is blocked.` : t`The key works again.`);
      loaded.reload();
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
      announce(t`The key is revoked.`);
      loaded.reload();
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
          {changeable ? (
            <SettingsForm
              key={key.version}
              of={key}
              does={t`Save`}
              save={async (fields) => {
                await changeKey(key, fields);
                announce(t`Saved.`);
                loaded.reload();
              }}
            />
          ) : (
            <FixedSettings {...key} />
          )}
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
                listed([usd(cost_usd), several(tries, 'attempt', 'attempts')]),
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
  const changes = adminRoute('audit', '', { key: id });
  return (
    <Facts
      class="fact-list"
      items={[
        moment(t`Expires`, expires),
        moment(t`Created`, created),
        updated !== created && moment(t`Changed`, updated),
        moment(t`Revoked`, revoked),
        ...secrets.map(({ until }) => moment(t`Old secret ends`, until)),
        source === 'admin' && [
          t`Audit`,
          <a key="audit" href={hashOf(changes)}>{t`its changes`}</a>,
        ],
      ]}
    />
  );
}

/** A key that cannot be changed here. */
function FixedSettings(key: KeyView) {
  const list = (values: readonly string[] | undefined) =>
    values === undefined ? t`all` : listed(values);
  return (
    <>
      <p class="soft">
        {key.revoked === undefined
          ? t`This key stands in the configuration. Change it there; the gateway takes it over without a restart.`
          : t`This key was revoked and never works again.`}
      </p>
      <Facts
        class="fact-list"
        items={[
          [t`Labels`, labelsText(key.labels ?? {}) || t`none`],
          [t`Models`, list(key.models)],
          [t`Server tools`, list(key.tools)],
          [t`Routes`, list(key.routes)],
          [t`Memory spaces`, list(key.spaces)],
          ...LIMITS.map(([name, title]) => {
            const limit = key.limits?.[name];
            return [title, limit === undefined ? t`none` : count(limit)] as const;
          }),
          [t`Budgets`, listed(key.budgets?.map(periodText) ?? []) || t`none`],
        ]}
      />
    </>
  );
}
