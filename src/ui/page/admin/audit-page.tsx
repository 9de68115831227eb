/** The audit: who changed which key, what changed, and whether the chain of entries is whole. */

import { CopyButton } from '../kit/copy.tsx';
import { count, several } from '../kit/format.ts';
import { useLoad } from '../kit/hooks.ts';
import { go, hashOf, type Route } from '../kit/route.ts';
import { Table } from '../kit/table.tsx';
import { Blank, Button, Soft, State, When } from '../kit/ui.tsx';
import { minuteOf } from '../kit/when.ts';
import { type AuditEntry, type ChainReport, getAudit, verifyAudit } from './api.ts';
import { PageFrame } from './page-frame.tsx';
import { changesBetween } from './value-changes.ts';

const ON_PAGE = 100;

const ACTIONS: Readonly<Record<string, string>> = {
  'key.create': 'created a key',
  'key.update': 'changed a key',
  'key.rotate': 'rotated a key',
  'key.revoke': 'revoked a key',
};

export function AuditPage({ route }: { route: Route }) {
  const key = route.query.key ?? '';
  const loaded = useLoad(
    async (signal) => {
      const [page, chain] = await Promise.all([
        getAudit({ limit: ON_PAGE, key }, signal),
        verifyAudit(signal),
      ]);
      return { ...page, chain };
    },
    [key],
  );
  const { data: found } = loaded;
  const more = async () => {
    if (found === undefined) return;
    const page = await getAudit({ limit: ON_PAGE, key, before: found.next ?? undefined });
    loaded.set({ ...found, data: [...found.data, ...page.data], next: page.next });
  };
  return (
    <PageFrame
      title="Audit"
      about="Every change to a key, and who made it. Each entry seals the one before it."
      loaded={loaded}
    >
      {found && (
        <>
          <p class="chain" role="status">
            <Chain {...found.chain} />
          </p>
          {key !== '' && (
            <p class="admin-filter">
              Only the key <code>{key}</code>{' '}
              <Button
                class="tiny"
                onClick={() => go({ name: 'admin', page: 'audit', id: '', query: {} })}
              >
                Show all
              </Button>
            </p>
          )}
          {found.data.length === 0 ? (
            <Blank title="Nothing was changed yet">
              <p>
                Every key that is created, changed, rotated or revoked appears here, whether it was
                done on this page or with <code>hopgate keys</code>.
              </p>
            </Blank>
          ) : (
            <Entries all={found.data} />
          )}
          {found.next !== null && (
            <p class="admin-more">
              <Button onClick={() => void more()}>Older entries</Button>
            </p>
          )}
        </>
      )}
    </PageFrame>
  );
}

function Chain({ valid, entries, head, fault }: ChainReport) {
  if (!valid) return <State tone="bad">{`The chain is broken: ${fault}.`}</State>;
  if (entries === 0) return <State>No entries yet.</State>;
  return (
    <>
      <State tone="ok">
        {`Verified: ${several(entries, 'entry', 'entries')}, none changed, none missing.`}
      </State>
      <Soft>
        {' '}
        Last hash <code title={head}>{head.slice(0, 12)}</code>{' '}
      </Soft>
      <CopyButton class="tiny" aria-label="Copy the hash of the last entry" read={() => head}>
        Copy
      </CopyButton>
    </>
  );
}

const Entries = ({ all }: { all: readonly AuditEntry[] }) => (
  <Table
    cards
    label="Audit entries, newest first"
    rows={all}
    columns={[
      { title: 'Entry', cell: ({ seq }) => count(seq), num: true },
      { title: 'Time', cell: ({ time }) => <When iso={time} words={minuteOf} /> },
      { title: 'Who', cell: ({ actor }) => <code>{actor}</code>, class: 'nowrap' },
      { title: 'What', cell: ({ action }) => ACTIONS[action] ?? action, class: 'nowrap' },
      {
        title: 'Key',
        class: 'wraps',
        cell: ({ target, before, after }) => (
          <a href={hashOf({ name: 'admin', page: 'keys', id: target, query: {} })} title={target}>
            {String((after ?? before)?.name ?? target)}
          </a>
        ),
      },
      { title: 'Changes', cell: (entry) => <Changes {...entry} />, class: 'wide' },
    ]}
  />
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
          {to === undefined ? <Soft>taken away</Soft> : <ins>{to}</ins>}
        </li>
      ))}
    </ul>
  );
}
