/** The audit: who changed which key, what changed, and whether the chain of entries is whole. */

import type { AuditEntry } from '../../../admin/api.ts';
import { isObject } from '../../../lib/json/json.ts';
import { act, CopyButton } from '../kit/copy.tsx';
import { count, minuteOf, several } from '../kit/format.ts';
import { useLoad } from '../kit/hooks.ts';
import { rich, t } from '../kit/language.ts';
import { adminRoute, go, hashOf, type Route } from '../kit/route.ts';
import { Table } from '../kit/table.tsx';
import { Blank, Button, PageFrame, Soft, State, When } from '../kit/ui.tsx';
import { type ChainReport, getAdmin } from './api.ts';

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
      about={t`Every change to a key, and who made it. Each entry holds the hash of the one before it.`}
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
            <Table
              cards
              label={t`Audit entries, newest first`}
              rows={found.data}
              columns={[
                [t`Entry`, ({ seq }) => count(seq), 'num'],
                [t`Time`, ({ time }) => <When iso={time} words={minuteOf} />],
                [t`Who`, ({ actor }) => <code>{actor}</code>, 'nowrap'],
                [t`What`, ({ action }) => ACTIONS[action] ?? action, 'nowrap'],
                [t`Key`, (entry) => <KeyLink {...entry} />, 'wraps'],
                [t`Changes`, (entry) => <Changes {...entry} />, 'wide'],
              ]}
            />
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

const KeyLink = ({ target, before, after }: AuditEntry) => (
  <a href={hashOf(adminRoute('keys', target))} title={target}>
    {String((after ?? before)?.name ?? target)}
  </a>
);

/** What an entry changed, setting by setting, in the order of the newer version. */
function Changes({ before, after }: AuditEntry) {
  const [was, is] = [before, after].map((fields) => new Map(linesOf(fields ?? {})));
  const names = [...new Set([...is!.keys(), ...was!.keys()])];
  const changed = names.filter((name) => was!.get(name) !== is!.get(name));
  if (changed.length === 0) return <Soft>–</Soft>;
  return (
    <ul class="changes">
      {changed.map((name) => (
        <li key={name}>
          <Soft>{name} </Soft>
          {was!.has(name) && [<del key="from">{was!.get(name)}</del>, ' → ']}
          {is!.has(name) ? <ins>{is!.get(name)}</ins> : <Soft>{t`taken away`}</Soft>}
        </li>
      ))}
    </ul>
  );
}

/** The settings of a key as names and values: objects member by member, lists as a whole. */
function linesOf(fields: object, path = ''): readonly (readonly [string, string])[] {
  return Object.entries(fields).flatMap(([name, value]) => {
    if (isObject(value)) return linesOf(value, `${path}${name}.`);
    const text = textOf(value);
    // Counted up by every change.
    return text === undefined || name === 'version' ? [] : [[path + name, text] as const];
  });
}

/** Undefined for nothing: left out, an empty list, false. */
function textOf(value: unknown): string | undefined {
  if (Array.isArray(value)) {
    const parts = value.map((one) => textOf(one) ?? '–');
    return parts.join(value.some(isObject) ? '; ' : ', ') || undefined;
  }
  if (isObject(value)) {
    return Object.entries(value)
      .map(([name, inner]) => `${name} ${textOf(inner) ?? '–'}`)
      .join(', ');
  }
  if (value === undefined || value === null || value === false) return undefined;
  return value === true ? t`yes` : String(value);
}
