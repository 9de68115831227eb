/** The view that replay and bisection share: starts a job on an exchange and shows its progress. */

import { useRef, useState } from 'preact/hooks';
import type { BisectRequest, JobEnd, JobEvent, ReplayRequest, SpendPlan } from '../../api/api.ts';
import { stageChoices, type ViewProps } from '../exchange/stages.tsx';
import { act } from '../kit/copy.tsx';
import { ask, failureText, get, json } from '../kit/fetching.ts';
import { Field, Options, Select, Word } from '../kit/form.tsx';
import { several, usd } from '../kit/format.ts';
import { useLoad } from '../kit/hooks.ts';
import { listed, rich, t } from '../kit/language.ts';
import { go, withQuery } from '../kit/route.ts';
import { Button, type Child, Problem } from '../kit/ui.tsx';

/** The fields that both have. */
export type Choice = Pick<ReplayRequest, 'id' | 'stage' | 'to' | 'repair'>;

const ASK_COST_AFTER_MS = 300;
const READ_AFTER_MS = 200;

interface JobTabProps extends ViewProps {
  readonly kind: 'replay' | 'bisect';
  readonly label: string;
  readonly lead?: Child;
  readonly children: Child;
  request(choice: Choice, form: FormData): ReplayRequest | BisectRequest;
  /** Many requests: a person is asked before they are sent. */
  readonly asks?: boolean;
  /** A text in place of the form until it is asked for, for exchanges that it does not suit. */
  readonly instead?: string | undefined;
  /** @param total most requests that are sent */
  progress(job: JobSoFar, total: number): Child;
  found(job: JobSoFar): Child;
}

export function JobTab(props: JobTabProps) {
  const { detail, kind, lead, instead, route } = props;
  const job = route.query.job ?? '';
  const form = <JobForm {...props} />;
  return (
    <div class={`${kind}-tab`}>
      {detail.sendable.length === 0 ? (
        <p class="same-words">{t`This exchange has no request that can be sent again.`}</p>
      ) : (
        <>
          {lead !== undefined && <p class="soft lead">{lead}</p>}
          {instead === undefined ? (
            form
          ) : (
            <details class="notfirst">
              <summary>{instead}</summary>
              {form}
            </details>
          )}
        </>
      )}
      {job !== '' && <Result key={job} {...props} job={job} />}
    </div>
  );
}

function JobForm({ detail, info, route, kind, label, children, asks, ...job }: JobTabProps) {
  const { sendable, row } = detail;
  const form = useRef<HTMLFormElement>(null);
  const [changes, setChanges] = useState(0);
  const [asking, setAsking] = useState(false);
  const [sent, setSent] = useState<{ busy?: boolean; problem?: string | undefined }>({});
  const request = () => {
    const data = new FormData(form.current!);
    const text = (name: string) => String(data.get(name)).trim();
    const choice = { stage: text('stage'), to: text('to'), repair: data.has('repair') };
    return job.request({ id: row.id, ...choice }, data);
  };
  /** The cost beside the button; what is wrong with the form below it. */
  const planned = useLoad(
    async (signal) => {
      if (changes > 0) await new Promise((done) => setTimeout(done, ASK_COST_AFTER_MS));
      signal.throwIfAborted();
      return json<SpendPlan>(`/${kind}/plan`, { method: 'POST', body: request(), signal });
    },
    [changes],
  );
  const plan = planned.problem === undefined ? planned.data : undefined;
  const change = () => {
    setChanges(changes + 1);
    setAsking(false);
    setSent({});
  };
  const send = async () => {
    setAsking(false);
    setSent({ busy: true });
    try {
      const made = await json<{ job: string }>(`/${kind}`, { method: 'POST', body: request() });
      setSent({});
      go(withQuery(route, made));
    } catch (thrown) {
      setSent({ problem: failureText(thrown) });
    }
  };
  const submit = () => {
    if (!asks) return void send();
    setAsking(true);
    if (plan === undefined) planned.reload();
  };
  return (
    <form
      ref={form}
      class="jobform"
      onInput={change}
      onChange={change}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <Field
        label={t`Send`}
        hint={t`a client request passes the whole gateway, a vendor request goes to the vendor unchanged`}
      >
        <Select name="stage" all={stageChoices(sendable)} />
      </Field>
      <Field label={t`To`} hint="provider/model">
        <Word
          name="to"
          list="targets"
          placeholder={row.target === '' ? t`as routed` : t`as routed (${row.target})`}
        />
      </Field>
      <datalist id="targets">
        <Options all={info.targets.map((target) => [target, ''])} />
      </datalist>
      <label class="field check">
        <input type="checkbox" name="repair" defaultChecked />
        <span>{t`Repair`}</span>
        <small>{t`without it, nothing is repaired`}</small>
      </label>
      {children}
      <div class="submit">
        <button type="submit" class="primary" disabled={sent.busy}>
          {label}
        </button>
        <p class="spend" role="status">
          {plan && spendText(plan, asks)}
        </p>
      </div>
      <Problem text={planned.problem ?? sent.problem} />
      {asking && plan && !planned.busy && (
        <div class="ask" role="alertdialog" aria-label={t`Cost`}>
          <p>{t`${spendText(plan, true)} Begin?`}</p>
          <Button class="primary" autofocus onClick={() => void send()}>{t`Begin`}</Button>
          <Button onClick={() => setAsking(false)}>{t`Cancel`}</Button>
        </div>
      )}
    </form>
  );
}

/** The events of a job so far, read until its end. */
function Result({ job: id, progress, found }: JobTabProps & { readonly job: string }) {
  const come = useRef<readonly JobEvent[]>([]);
  const { data: events = [], problem } = useLoad(
    async (signal) => {
      const more = await get('/jobs/:id', { id, from: come.current.length }, signal);
      come.current = [...come.current, ...more.events];
      return come.current;
    },
    [id],
    (all) => (all.at(-1)?.type === 'end' ? undefined : READ_AFTER_MS),
  );
  const end = events.find((event) => event.type === 'end');
  const job = { events, end, running: end === undefined && problem === undefined };
  const begin = events.find((event) => event.type === 'begin');
  const stop = async () => {
    await ask('/jobs/:id', { method: 'DELETE', params: { id } });
  };
  return (
    <div class="job-result">
      <p class="progress" role="status">
        {job.running && <i class="spinner" />}
        {begin === undefined ? (
          t`Starting`
        ) : (
          <span>{rich`${STATES[end?.state ?? 'running']}: ${progress(job, begin.total)}`}</span>
        )}
        {job.running && <Button class="tiny" onClick={() => void act(stop)}>{t`Stop`}</Button>}
      </p>
      <Problem text={problem ?? end?.error?.message} />
      {found(job)}
    </div>
  );
}

/** `Sends 2 requests: glm/glm-4.7 about $0.0021, deepseek/x price unknown.` @param most it ends there at the latest */
function spendText({ requests, targets, usd: sum, guessed }: SpendPlan, most = false): string {
  const about = (amount: number) =>
    most ? t`at most about ${usd(amount)}` : t`about ${usd(amount)}`;
  const each = targets.map(({ target, usd: one }) => {
    const price = one === null ? t`price unknown` : about(one);
    return target === '' ? price : listed([target, price]);
  });
  const all = [...each, ...(targets.length > 1 && sum !== null ? [t`${about(sum)} in all`] : [])];
  const prices =
    all.join('; ') + (guessed && sum !== null ? t` (guessed from the size of the request)` : '');
  const number = several(requests, 'request');
  return most ? t`Up to ${number}: ${prices}.` : t`Sends ${number}: ${prices}.`;
}

interface JobSoFar {
  readonly events: readonly JobEvent[];
  readonly end: JobEnd | undefined;
  readonly running: boolean;
}

const STATES = { running: t`Running`, done: t`Done`, failed: t`Failed`, cancelled: t`Stopped` };
