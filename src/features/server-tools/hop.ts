/** One hop's events on their way to the client: server calls held, blocks counted on, endings joined. */

import {
  type BlockHead,
  type FinishEvent,
  isSemantic,
  type StreamEvent,
} from '../../conversation/events.ts';
import { ReplyBuilder } from '../../conversation/reply-builder.ts';
import type { Block, Conversation } from '../../conversation/types.ts';
import type { Usage } from '../../conversation/usage.ts';
import { prefixedId } from '../../lib/text/ids.ts';
import type { Continuation, Interceptor } from '../feature.ts';
import { CitedText } from './citations/cited-text.ts';
import type { Offer } from './offer.ts';
import { nextConversation, remember, runRound } from './round.ts';
import type { ServerCall } from './run-calls.ts';
import type { Session } from './session.ts';

export interface HopOptions {
  readonly session: Session;
  readonly offer: Offer;
  /** The conversation that the passes of this hop began with. */
  readonly base: Conversation;
  /** The conversation that the upstream answers: its call ids are taken. */
  readonly sent: Conversation;
  readonly hop: number;
  /** This hop must answer: calls of server tools are not run any more. */
  readonly last: boolean;
  /** Told to the client before anything else of this hop (a search made beforehand). */
  readonly lead: readonly StreamEvent[];
}

/** A block of the upstream that is open. */
type Open =
  | { readonly kind: 'held' }
  | { readonly kind: 'plain'; readonly index: number; readonly text: boolean; first: boolean }
  | { readonly kind: 'cited'; readonly text: CitedText };

const HELD: Open = { kind: 'held' };

/** Endings behind which calls are run: with any other the turn is not whole. */
const RUNS = new Set<FinishEvent['reason']>(['stop', 'tool-calls', 'stop-sequence']);

const callIds = ({ turns }: Conversation): readonly string[] =>
  turns.flatMap(({ blocks }) =>
    blocks.flatMap((block) => (block.type === 'tool-call' ? [block.id] : [])),
  );

/** The interceptor of one try of one hop. All it learns is its own until the stream's true end. */
export function hopInterceptor(options: HopOptions): Interceptor {
  const { session, offer, hop, last } = options;
  const { client } = session.options;
  const fold = new ReplyBuilder();
  /** Positions in `fold` and ids of held calls. */
  const held: { readonly at: number; readonly call: ServerCall }[] = [];
  const clientCalls: string[] = [];
  const begun =
    session.blocks + options.lead.filter((event) => event.type === 'block-start').length;
  let blocks = begun;
  let folded = 0;
  let said = '';
  let usage: Usage | undefined;
  let open: Open = HELD;
  let finish: FinishEvent | undefined;
  let goesOn = false;
  let ended = false;
  const cites =
    offer.list.some(({ declared }) => declared !== undefined) && session.sources.size > 0;
  const counter = { take: () => blocks++ };

  /** Told text, remembered as the client will give it back. */
  function asTold<T extends readonly StreamEvent[]>(events: T): T {
    for (const event of events) if (event.type === 'delta') said += event.text;
    return events;
  }

  function openBlock(
    event: StreamEvent & { type: 'block-start' },
  ): StreamEvent | readonly StreamEvent[] {
    const { head } = event;
    if (head.type === 'tool-call' && head.by === 'client' && head.namespace === undefined) {
      const offered = offer.byName(head.name);
      if (offered !== undefined) {
        open = HELD;
        const id = freeId(head.id);
        held.push({ at: folded, call: { id, offered, input: '' } });
        return [];
      }
    }
    if (head.type === 'text' && cites) {
      const text = new CitedText(client, (n) => session.sources.get(n), counter);
      open = { kind: 'cited', text };
      return [text.start()];
    }
    const index = blocks++;
    const text = head.type === 'text' || head.type === 'refusal';
    open = { kind: 'plain', index, text, first: text };
    const named = withId(head);
    return index === event.index && named === head ? event : { ...event, index, head: named };
  }

  /** Ids of the calls that the upstream knows of, this turn's included. */
  let taken: Set<string> | undefined;

  /**
   * The id, or another where there is none or it is taken: some vendors count anew in every answer, and
   * a history with hidden calls in it then holds two of one id, which others refuse.
   */
  function freeId(id: string): string {
    taken ??= new Set(callIds(options.sent));
    const free = id === '' || taken.has(id) ? prefixedId('call_') : id;
    taken.add(free);
    return free;
  }

  /** A client's call without an id gets one here: its turn is found again by it. */
  function withId(head: BlockHead): BlockHead {
    if (head.type !== 'tool-call' || head.by !== 'client') return head;
    const id = freeId(head.id);
    clientCalls.push(id);
    return id === head.id ? head : { ...head, id };
  }

  /** Chat joins all text into one string: what two hops said are two paragraphs. */
  function gap(): string {
    if (client !== 'openai-chat' || said !== '' || session.said === '') return '';
    return session.said.endsWith('\n') ? '' : '\n\n';
  }

  function inBlock(event: Extract<StreamEvent, { index: number }>) {
    if (open.kind === 'held') return [];
    if (open.kind === 'cited') {
      if (event.type === 'delta') {
        const before = event.text === '' ? '' : gap();
        return asTold([...(before ? open.text.push(before) : []), ...open.text.push(event.text)]);
      }
      // A vendor's own citation of text that has been told in other blocks still speaks of this one.
      return [{ ...event, index: open.text.index }];
    }
    const { index } = open;
    if (open.text && event.type === 'delta' && event.text !== '') {
      const before = open.first ? gap() : '';
      open.first = false;
      said += before + event.text;
      if (before !== '') return { ...event, index, text: before + event.text };
    }
    return index === event.index ? event : { ...event, index };
  }

  function closeBlock(event: StreamEvent & { type: 'block-stop' }) {
    folded++;
    const was = open;
    open = HELD;
    if (was.kind === 'held') return [];
    if (was.kind === 'cited') return asTold(was.text.end());
    return was.index === event.index ? event : { ...event, index: was.index };
  }

  function finished(event: FinishEvent): StreamEvent | readonly StreamEvent[] {
    finish = event;
    const { reason } = event;
    goesOn = !last && (reason === 'pause' || (held.length > 0 && RUNS.has(reason)));
    if (goesOn) return [];
    const end = ending(event);
    const total = session.usage === undefined && !hasHosted() ? undefined : session.total(usage);
    return total === undefined ? end : [{ type: 'usage', usage: total }, end];
  }

  const hasHosted = () => Object.keys(session.hosted).length > 0;

  /** No call of the client's is left behind this ending, and no turn may be asked for again. */
  function ending(event: FinishEvent): FinishEvent {
    const hollow = held.length > 0 && clientCalls.length === 0 && event.reason === 'tool-calls';
    return hollow || event.reason === 'pause' ? { type: 'finish', reason: 'stop' } : event;
  }

  const commit = () => session.commit({ base: options.base, blocks, said, clientCalls, usage });

  /** The turn as the upstream knows it; calls under the ids that their results will name. */
  function turnBlocks(withHeld: boolean): readonly Block[] {
    const serverIds = new Map(held.map(({ at, call }) => [at, call.id]));
    let mine = 0;
    return fold.reply.blocks.flatMap((block, at) => {
      if (block.type !== 'tool-call' || block.by !== 'client') return [block];
      const serverId = serverIds.get(at);
      if (serverId !== undefined && !withHeld) return [];
      const id = serverId ?? clientCalls[mine++];
      return id === undefined || id === block.id ? [block] : [{ ...block, id }];
    });
  }

  function complete(): void {
    commit();
    if (session.delta.length === 0) return;
    const turn = turnBlocks(false);
    if (turn.length > 0) session.delta = [...session.delta, { role: 'assistant', blocks: turn }];
    remember(session);
  }

  function calls(): readonly ServerCall[] {
    const said = fold.reply.blocks;
    return held.map(({ at, call }) => {
      const block = said[at];
      return { ...call, input: block?.type === 'tool-call' ? block.input : '' };
    });
  }

  function next(): Continuation | undefined {
    if (!goesOn || !ended) return undefined;
    const mixed = clientCalls.length > 0;
    return {
      last: mixed,
      async run(signal, emit) {
        commit();
        await runRound(session, turnBlocks(true), calls(), { signal, emit, hop });
        const base = session.base ?? options.base;
        if (!mixed) return nextConversation(session, base);
        remember(session);
        const total = session.total(undefined);
        emit([
          ...(total === undefined ? [] : [{ type: 'usage', usage: total } as const]),
          finish ?? { type: 'finish', reason: 'tool-calls' },
          { type: 'end' },
        ]);
        return base;
      },
    };
  }

  /** What waits for the first word: until then a failed try can be repeated unseen. */
  let waiting: StreamEvent[] | undefined = options.lead.length > 0 ? [] : undefined;

  function event(event: StreamEvent): StreamEvent | readonly StreamEvent[] {
    const out = handle(event);
    if (waiting === undefined || event.type === 'start' || event.type === 'error') return out;
    const list = Array.isArray(out) ? (out as readonly StreamEvent[]) : [out as StreamEvent];
    if (!isSemantic(event) && event.type !== 'finish') {
      waiting.push(...list);
      return [];
    }
    const all = [...options.lead, ...waiting, ...list];
    waiting = undefined;
    return all;
  }

  function handle(event: StreamEvent): StreamEvent | readonly StreamEvent[] {
    fold.push(event);
    switch (event.type) {
      case 'start':
        usage = event.usage ?? usage;
        if (hop > 1) return [];
        // A response object repeats its request, our tools in it, and its events are numbered through:
        // none of the upstream's own may go on as they came.
        return client === 'openai-responses' ? { ...event } : event;
      case 'block-start':
        return openBlock(event);
      case 'delta':
      case 'sealed':
      case 'citation':
      case 'logprobs':
        return inBlock(event);
      case 'block-stop':
        return closeBlock(event);
      case 'usage': {
        usage = event.usage;
        if (goesOn) return [];
        if (session.usage === undefined && !hasHosted()) return event;
        const total = session.total(usage);
        return total === undefined ? [] : { type: 'usage', usage: total };
      }
      case 'finish':
        return finished(event);
      case 'end':
        ended = true;
        if (goesOn) return [];
        complete();
        return event;
      case 'opaque':
        // What speaks of a whole answer is not true of a part of it.
        return goesOn || (held.length > 0 && event.name === 'message_delta') ? [] : event;
      case 'error':
      case 'tool-event':
        return event;
    }
  }

  return { event, end: () => [], continuation: next };
}
