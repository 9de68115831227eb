/** The health of providers, targets and keys: what cools down, why and until when, what the vendor says remains, last errors. */

import type {
  HealthOfKey,
  ProviderHealth,
  ShownCooldown,
  TargetState,
} from '../../../admin/api.ts';
import { count, several, short } from '../kit/format.ts';
import { useLoad } from '../kit/hooks.ts';
import { rich, t } from '../kit/language.ts';
import { Table } from '../kit/table.tsx';
import { Blank, DocLink, PageFrame, Soft, State, When } from '../kit/ui.tsx';
import { getReport } from './api.ts';

const RELOAD_AFTER_MS = 3000;

const REASONS: Readonly<Record<string, string>> = {
  rate_limit: t`rate limit of the vendor`,
  overloaded: t`the vendor has no capacity`,
  key_refused: t`the vendor refuses the key`,
  quota: t`plan or balance is used up`,
  failures: t`failures in a row`,
};

const STATES: Readonly<Record<TargetState, readonly [text: string, tone: string]>> = {
  serving: [t`serving`, 'ok'],
  no_model: [t`no such model`, 'warn'],
  half_open: [t`being tried again`, 'warn'],
  resting: [t`cooling down`, 'bad'],
};

export function HealthPage() {
  const loaded = useLoad((signal) => getReport('/health', {}, signal), [], RELOAD_AFTER_MS);
  const { data: found } = loaded;
  return (
    <PageFrame
      title={t`Health`}
      about={t`Which vendors are serving, and which are cooling down and until when. Routing skips a vendor that cools down while another one can answer.`}
      loaded={loaded}
    >
      {found && found.workers > 1 && (
        <p class="soft admin-filter">
          {t`As one of ${count(found.workers)} processes sees it; each learns for itself.`}
        </p>
      )}
      {found?.data.length === 0 && (
        <Blank title={t`No provider is configured`}>
          <p>{rich`Requests go to providers. ${<DocLink to="configuration">{t`Configure one`}</DocLink>}.`}</p>
        </Blank>
      )}
      {found?.data.map((one) => (
        <Provider key={one.provider} {...one} />
      ))}
    </PageFrame>
  );
}

interface Line extends HealthOfKey {
  readonly target: string;
  readonly cooldowns: readonly ShownCooldown[];
}

/** A name that some client made up says nothing of the others. */
function stateOf({ targets }: ProviderHealth): readonly [text: string, tone?: string] {
  const states = targets.map(({ state }) => state).filter((one) => one !== 'no_model');
  const first = states[0] ?? targets[0]?.state;
  if (first === undefined) return [t`not used yet`];
  const same = states.every((one) => one === first) && first !== 'half_open';
  return same ? STATES[first] : [t`serving in part`, 'warn'];
}

function Provider(one: ProviderHealth) {
  const { provider, protocol, keys, resting_keys, targets } = one;
  const [state, tone] = stateOf(one);
  const lines = targets.flatMap(({ target, rest, places }) =>
    places.map((slot): Line => {
      const ofKey = resting_keys.find(({ key }) => key === slot.key) ?? null;
      return {
        ...slot,
        target: target.slice(provider.length + 1),
        cooldowns: [slot.rest, rest, ofKey].filter((each) => each !== null),
      };
    }),
  );
  return (
    <section class="panel provider" aria-label={provider}>
      <header>
        <h2>{provider}</h2>
        <State tone={tone}>{state}</State>
        <Soft>{protocol}</Soft>
        <Soft>{keys === 0 ? t`needs no key` : several(keys, 'key')}</Soft>
      </header>
      {lines.length === 0 ? (
        <p class="soft">{t`No request has been sent here since the gateway started.`}</p>
      ) : (
        <Table
          cards
          label={t`Targets of ${provider}`}
          rows={lines}
          columns={[
            [t`Model`, ({ target }) => target, 'wraps'],
            [
              t`Key`,
              ({ key }) =>
                key === null ? <Soft>{t`none`}</Soft> : <code class="nowrap">{key}</code>,
            ],
            [t`State`, (line) => <LineState {...line} />],
            [t`Remaining`, (line) => <Quotas {...line} />],
            [t`Last error`, (line) => <Failure {...line} />, 'wide'],
          ]}
        />
      )}
    </section>
  );
}

const LineState = ({ state, cooldowns, waiting }: Line) => (
  <>
    <State tone={STATES[state][1]}>{STATES[state][0]}</State>
    {waiting > 0 && <Soft>{rich` · ${several(waiting, 'request')} waiting`}</Soft>}
    {cooldowns.map(({ reason, status, probing, until }) => (
      <div class="soft small" key={reason}>
        {REASONS[reason] ?? reason}
        {status > 0 && ` (${status})`}
        {probing ? t`, one request is trying it` : rich`, until ${<When iso={until} />}`}
      </div>
    ))}
  </>
);

const KINDS: Readonly<Record<string, string>> = {
  input_tokens: t`input tokens`,
  output_tokens: t`output tokens`,
  all: t`of its limit`,
};

function Quotas({ quotas, quotas_seen }: Line) {
  if (quotas_seen === null) return <Soft>{t`not reported`}</Soft>;
  return (
    <>
      {quotas.map(({ kind, limit, remaining, resets_at }) => (
        <div
          class="quota"
          key={kind}
          data-low={limit !== null && remaining < limit / 10 ? '' : undefined}
        >
          <b>{short(remaining)}</b>
          {limit !== null && t` of ${short(limit)}`}
          {` ${KINDS[kind] ?? kind}`}
          {resets_at !== null && Date.parse(resets_at) > Date.now() && (
            <Soft>{rich`, resets ${<When iso={resets_at} />}`}</Soft>
          )}
        </div>
      ))}
      <div class="soft small">{rich`seen ${<When iso={quotas_seen} />}`}</div>
    </>
  );
}

function Failure({ last_failure: failure }: Line) {
  if (failure === null) return <Soft>{t`none`}</Soft>;
  const { time, status, kind, message } = failure;
  return (
    <>
      <div class="wraps">{message}</div>
      <div class="soft small">
        <When iso={time} />
        {t`, ${status > 0 ? `${status} ${kind}` : kind}`}
      </div>
    </>
  );
}
