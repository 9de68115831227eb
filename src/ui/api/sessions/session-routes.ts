/** `/ui/api/sessions…`: the sessions of the last exchanges, and one session as its conversations. */

import { Elysia } from 'elysia';
import { GatewayError } from '../../../conversation/errors.ts';
import type { Conversation } from '../../../conversation/types.ts';
import { othersTurn, runInSlices, type Steps } from '../../../lib/loop/steps.ts';
import type { Prices } from '../../../samples/replay/cost.ts';
import { endOf, isFailure, type SampleRow, type SampleStore } from '../../../samples/sample.ts';
import { json } from '../answers.ts';
import { blockViews, turnViews } from '../bodies/conversation-view.ts';
import { type Recorded, saidIn } from '../bodies/said.ts';
import type { ApiContext } from '../context.ts';
import { guard, type Viewer } from '../guard.ts';
import { priced, type UiRow } from '../list.ts';
import type { KeyNames } from '../options.ts';
import { askedIn, firstWords } from '../stories.ts';
import { cacheOf, type Prompt, promptOf, sharedTurns } from './cache-loss.ts';

/** The newest exchanges whose sessions are listed. */
const MAX_ROWS = 5000;

export const sessionRoutes = (context: ApiContext) =>
  new Elysia()
    .use(guard(context.options))
    .get('/sessions', ({ viewer }) =>
      json({ sessions: sessionsOf(context.store, context.prices, viewer.owner, viewer.keys) }),
    )
    .get('/sessions/:id', async ({ params, viewer }) =>
      json(await sessionView(params.id, viewer, context)),
    );

/** The sessions of the newest exchanges. @param owner only those of this key */
export function sessionsOf(
  store: SampleStore,
  prices: Prices,
  owner: string | undefined,
  keys?: KeyNames,
) {
  const rows = store.list({ ...(owner !== undefined && { owner }), limit: MAX_ROWS });
  const groups = Map.groupBy(
    rows.filter(({ session }) => session !== '').map((row) => priced(row, prices, keys)),
    ({ session }) => session,
  );
  return [...groups].map(([id, own]) => sessionRow(id, own));
}

/** Exchanges at the beginning of a session, of which one begins its conversation. */
const MAX_BEGINNING = 5;
/** A prompt of less than this share of the largest one is a small job. The conversation itself grows. */
const SMALL_SHARE = 1 / 4;

/**
 * The first exchange of the main conversation, in the list and on the page of a session: agents ask for a title, or
 * check their quota, with small requests before it.
 * @param rows oldest first
 */
function beginningOf<Row extends SampleRow>(rows: readonly Row[]): Row {
  const begin = rows.slice(0, MAX_BEGINNING);
  const isCounted = begin.some(({ input_tokens }) => input_tokens !== null);
  const size = ({ input_tokens, bytes }: SampleRow) => (isCounted ? (input_tokens ?? 0) : bytes);
  const largest = Math.max(...begin.map(size));
  return begin.find((row) => size(row) >= largest * SMALL_SHARE)!;
}

/** @param rows newest first */
function sessionRow(id: string, rows: readonly UiRow[]) {
  const first = beginningOf(rows.toReversed());
  const failures = rows.filter((row) => isFailure(endOf(row)));
  return {
    id,
    client: first.client,
    key: first.key_name ?? first.owner,
    models: [...new Set(rows.map(({ model }) => model))].filter((model) => model !== ''),
    /** The first exchange of its conversation. */
    first: first.id,
    /** Milliseconds since 1970, of the first exchange and of the last one's end. */
    from: rows.at(-1)!.time,
    until: Math.max(...rows.map(({ time, total_ms }) => time + (total_ms ?? 0))),
    exchanges: rows.length,
    /** Exchanges that failed, and those that a later try made good. */
    failed: failures.length,
    retried: rows.filter((row) => row.failed && !failures.includes(row)).length,
    totals: totalsOf(rows),
  };
}

/** Most exchanges of one view, and characters of one text. */
const MAX_STEPS = 400;
const MAX_TEXT = 4000;

interface Thread {
  /** First words of what it was asked. */
  readonly title: string;
  exchanges: number;
  prompt: Prompt;
  row: UiRow;
  /** The exchange before was answered: its answer is the next turn of the assistant. */
  answered: boolean;
}

export type SessionView = Awaited<ReturnType<typeof sessionView>>;

/**
 * The exchanges of a session as one conversation: the first 400 that the viewer may see, with their totals.
 * @throws GatewayError not_found where the viewer sees none
 */
async function sessionView(id: string, viewer: Viewer, context: ApiContext) {
  const all = sessionRows(id, viewer, context);
  const rows = all.slice(0, MAX_STEPS).map((row) => priced(row, context.prices, viewer.keys));
  if (rows.length === 0) {
    throw new GatewayError('not_found', `There is no session "${id.slice(0, 100)}".`);
  }
  const steps: Step[] = [];
  const threads: Thread[] = [];
  for (const row of rows) {
    const recorded = await context.recorded(row.id, viewer).catch(() => undefined);
    // It may have been removed meanwhile.
    if (recorded !== undefined) {
      steps.push(await runInSlices(stepOf(recorded, row, threads)));
    }
    await othersTurn();
  }
  const first = beginningOf(rows).id;
  const main = steps.find(({ row }) => row.id === first)?.thread;
  const ordered = [...threads.keys()].toSorted(
    (a, b) =>
      Number(b === main) - Number(a === main) || lengthOf(threads[b]!) - lengthOf(threads[a]!),
  );
  const places = new Map(ordered.map((from, to) => [from, to]));
  return {
    ...sessionRow(id, rows.toReversed()),
    steps: steps.map((step) => ({ ...step, thread: places.get(step.thread) ?? step.thread })),
    /** Conversations of the session: the main one, then those of subagents and small jobs, the longest first. */
    threads: ordered.map((at) => {
      const { title, exchanges } = threads[at]!;
      return { title, exchanges };
    }),
    /** Later exchanges were left out. */
    more: all.length > MAX_STEPS,
  };
}

/** Exchanges count more than turns: a title job has one of each. */
const lengthOf = ({ exchanges, prompt }: Thread): number => exchanges * 1000 + prompt.turns.length;

/** Exchanges of exactly this session, oldest first. */
function sessionRows(id: string, { owner }: Viewer, { store }: ApiContext): readonly SampleRow[] {
  const filter = { session: id, ...(owner !== undefined && { owner }) };
  const sort = { by: 'time', up: true } as const;
  return store
    .list({ ...filter, sort, limit: MAX_STEPS + 1 })
    .filter(({ session }) => session === id);
}

type Step = ReturnType<typeof stepOf> extends Steps<infer T> ? T : never;

function* stepOf(recorded: Recorded, row: UiRow, threads: Thread[]) {
  const { meta } = recorded;
  const { sent, reply } = yield* saidIn(recorded);
  const blocks = reply?.reply.blocks ?? [];
  const view = { most: MAX_TEXT, places: new Map() };
  const prompt = sent && (yield* promptOf(sent));
  const placed = prompt && place(sent, prompt, row, blocks.length > 0, threads);
  const added = placed && (yield* turnViews(sent!.turns.slice(placed.from), view));
  return {
    row,
    /** Index of its thread. */
    thread: placed?.thread ?? 0,
    /** The turns that the request added, and their indexes in the request. */
    added: added?.map((turn, i) => ({ ...turn, index: placed!.from + i })) ?? [],
    answered: blockViews(blocks, view),
    /** What went wrong. */
    problem: meta.error?.message ?? reply?.problem?.message ?? null,
    cache: placed?.cache ?? null,
  };
}

/** Finds the conversation that a request continues, or begins one; says which of its turns are new. */
function place(
  sent: Conversation,
  prompt: Prompt,
  row: UiRow,
  answered: boolean,
  threads: Thread[],
) {
  let best: { readonly index: number; readonly shared: number } | undefined;
  for (const [index, thread] of threads.entries()) {
    const shared = sharedTurns(thread.prompt, prompt);
    if (shared > 0 && shared >= (best?.shared ?? 0)) best = { index, shared };
  }
  if (best === undefined) {
    threads.push({ title: firstWords(askedIn(sent)), exchanges: 1, prompt, row, answered });
    return { thread: threads.length - 1, from: 0, cache: cacheOf({ row, prompt }, undefined) };
  }
  const before = threads[best.index]!;
  // The turn of the assistant is the answer of the exchange before, which is shown there.
  const said = before.answered && best.shared === before.prompt.turns.length;
  let from = best.shared;
  while (said && sent.turns[from]?.role === 'assistant') from++;
  const cache = cacheOf({ row, prompt }, before);
  Object.assign(before, { exchanges: before.exchanges + 1, prompt, row, answered });
  return { thread: best.index, from, cache };
}

function totalsOf(rows: readonly UiRow[]) {
  const sum = (of: (row: UiRow) => number | null) =>
    rows.reduce((total, row) => total + (of(row) ?? 0), 0);
  const some = rows.some(({ cost }) => cost !== null);
  return {
    input_tokens: sum((row) => row.input_tokens),
    cached_tokens: sum((row) => row.cached_tokens),
    output_tokens: sum((row) => row.output_tokens),
    /** USD; null when nothing has a price. */
    cost: some ? sum((row) => row.cost) : null,
  };
}
