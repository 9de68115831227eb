/** The audit: who changed which key, what changed, and whether the chain of entries is whole. */

import type { AuditEntry } from '../../../admin/api.ts';
import { act, CopyButton } from '../kit/copy.tsx';
import { count, minuteOf, several } from '../kit/format.ts';
import { useLoad } from '../kit/hooks.ts';
import { rich, t } from '../kit/language.ts';
import { adminRoute, go, hashOf, type Route } from '../kit/route.ts';
import { Table } from '../kit/table.tsx';
import { Blank, Button, Soft, State, When } from '../kit/ui.tsx';
import { type ChainReport, getAdmin } from './api.ts';
import { PageFrame } from './page-frame.tsx';

const ON_PAGE = 100;

const ACTIONS: Readonly<Record<string, string>> = {
  'key.create': t`created a key`,
  'key.update': t`changed a key`,
  'key.rotate': t`rotated a key`,
  'key.revoke': t`revoked a key`,
};

export function AuditPage({ route }: { route: Route }) {
  const key = route.query.key ?? '';
  const loaded = useLoad(
    async (signal) => {
      const [page, chain] = await Promise.all([
        getAdmin('/audit', { limit: ON_PAGE, key }, signal),
        getAdmin('/audit/verify', {}, signal),
      ]);
      return { ...page, chain };
    },
    [key],
  );
  const { data: found } = loaded;
  const more = async () => {
    if (found === undefined) return;
    const page = await getAdmin('/audit', { limit: ON_PAGE, key, before: found.next ?? undefined });
    loaded.set({ ...found, data: [...found.data, ...page.data], next: page.next });
  };
  return (
    <PageFrame
      title={t`Audit`}
      about={t`Every change to a key, and who made it. Each entry seals the one before it.`}
      loaded={loaded}
    >
      {found && (
        <>
          <p class="chain" role="status">
            <Chain {...found.chain} />
          </p>
          {key !== '' && (
            <p class="admin-filter">
              {rich`Only the key ${<code>{key}</code>} 
              ${<Button class="tiny" onClick={() => go(adminRoute('audit'))}>{t`Show all`}</Button>}`}
            </p>
          )}
          {found.data.length === 0 ? (
            <Blank title={t`Nothing was changed yet`}>
              <p>{rich`Every key that is created, changed, rotated or revoked appears here, whether it was done on this page or with ${<code>hopgate keys</code>}.`}</p>
            </Blank>
          ) : (
            <Entries all={found.data} />
          )}
          {found.next !== null && (
            <p class="admin-more">
              <Button onClick={() => void act(more)}>{t`Older entries`}</Button>
            </p>
          )}
        </>
      )}
    </PageFrame>
  );
}

function Chain({ valid, entries, head, fault }: ChainReport) {
  if (!valid) return <State tone="bad">{t`The chain is broken: ${fault ?? ''}.`}</State>;
  if (entries === 0) return <State>{t`No entries yet.`}</State>;
  return (
    <>
      <State tone="ok">
        {t`Verified: ${several(entries, 'entry', 'entries')}, none changed, none missing.`}
      </State>
      <Soft>{rich` Last hash ${<code title={head}>{head.slice(0, 12)}</code>} `}</Soft>
      <CopyButton
        class="tiny"
        aria-label={t`Copy the hash of the last entry`}
        read={() => head}
      >{t`Copy`}</CopyButton>
    </>
  );
}

const Entries = ({ all }: { all: readonly AuditEntry[] }) => (
  <Table
    cards
    label={t`Audit entries, newest first`}
    rows={all}
    columns={[
      [t`Entry`, ({ seq }) => count(seq), 'num'],
      [t`Time`, ({ time }) => <When iso={time} words={minuteOf} />],
      [t`Who`, ({ actor }) => <code>{actor}</code>, 'nowrap'],
      [t`What`, ({ action }) => ACTIONS[action] ?? action, 'nowrap'],
      [t`Key`, (entry) => <KeyLink {...entry} />, 'wraps'],
      [t`Changes`, (entry) => <Changes {...entry} />, 'wide'],
    ]}
  />
);

const KeyLink = ({ target, before, after }: AuditEntry) => (
  <a href={hashOf(adminRoute('keys', target))} title={target}>
    {String((after ?? before)?.name ?? target)}
  </a>
);

function Changes({ before, after }: AuditEntry) {
  const changes = changesBetween(before ?? {}, after ?? {});
  if (changes.length === 0) return <Soft>–</Soft>;
  return (
    <ul class="changes">
      {changes.map(({ name, from, to }) => (
        <li key={name}>
          <Soft>{name} </Soft>
          {from !== undefined && [<del key="from">{from}</del>, ' → ']}
          {to === undefined ? <Soft>{t`taken away`}</Soft> : <ins>{to}</ins>}
        </li>
      ))}
    </ul>
  );
}

type Fields = Readonly<Record<string, unknown>>;

interface FieldChange {
  readonly name: string;
  /** Undefined: it was not there. */
  readonly from: string | undefined;
  /** Undefined: it is not there any more. */
  readonly to: string | undefined;
}

/** Counted up by every change. */
const NOISE = new Set(['version']);

/** Objects are compared member by member, lists as a whole; in the order of the newer version. */
function changesBetween(before: Fields, after: Fields, path = ''): readonly FieldChange[] {
  const names = [...new Set([...Object.keys(after), ...Object.keys(before)])];
  return names.flatMap((name) => {
    const [from, to] = [before[name], after[name]];
    const full = path === '' ? name : `${path}.${name}`;
    if (NOISE.has(full) || JSON.stringify(from) === JSON.stringify(to)) return [];
    if (isFields(from ?? {}) && isFields(to ?? {}) && (isFields(from) || isFields(to))) {
      return changesBetween((from ?? {}) as Fields, (to ?? {}) as Fields, full);
    }
    const change = { name: full, from: textOf(from), to: textOf(to) };
    // A list that was empty and is not there any more is no change to a reader.
    return change.from === change.to ? [] : [change];
  });
}

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Undefined for nothing: left out, an empty list, false. */
function textOf(value: unknown): string | undefined {
  if (value === undefined || value === null || value === false) return undefined;
  if (Array.isArray(value)) {
    return value.length === 0
      ? undefined
      : value.map((one) => textOf(one) ?? '–').join(value.some(isFields) ? '; ' : ', ');
  }
  if (isFields(value)) {
    return Object.entries(value)
      .map(([name, inner]) => `${name} ${textOf(inner) ?? '–'}`)
      .join(', ');
  }
  return value === true ? t`yes` : String(value);
}
