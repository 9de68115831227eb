/** The interceptor of one hop: holds back server calls, renumbers blocks, joins the hops into one stream. */

import {
  type BlockHead,
  type FinishEvent,
  isSemantic,
  type StreamEvent,
} from '../../conversation/events.ts';
import type { Notes } from '../../conversation/notes.ts';
import { ReplyBuilder } from '../../conversation/reply-builder.ts';
import type { Block, Conversation } from '../../conversation/types.ts';
import type { Usage } from '../../conversation/usage.ts';
import { prefixedId } from '../../lib/text/ids.ts';
import type { Continuation, Interceptor } from '../feature.ts';
import { CitedText } from './citations/cited-text.ts';
import type { Offer } from './offer.ts';
import { nextConversation, runRound, storeAnswer } from './round.ts';
import type { ServerCall } from './run-calls.ts';
import type { Session } from './session.ts';

export interface HopOptions {
  readonly session: Session;
  readonly offer: Offer;
  /** The conversation that this hop's request passes started from. */
  readonly base: Conversation;
  /** The conversation that was sent to the upstream; the ids of its calls are taken. */
  readonly sent: Conversation;
  readonly hop: number;
  /** This hop must answer: it runs no more server tools. */
  readonly last: boolean;
  /** Events that the client gets before any other of this hop (a search made beforehand). */
  readonly lead: readonly StreamEvent[];
  readonly notes: Notes;
}

/** The open block of the upstream's stream, and what the client sees of it. */
type OpenBlock =
  | { readonly kind: 'held' }
  | { readonly kind: 'plain'; readonly index: number; readonly isText: boolean; first: boolean }
  | { readonly kind: 'cited'; readonly text: CitedText };

const HELD: OpenBlock = { kind: 'held' };

/** Calls run after these endings only: after any other the turn is incomplete. */
const RUNS_AFTER = new Set<FinishEvent['reason']>(['stop', 'tool-calls', 'stop-sequence']);

const callIds = ({ turns }: Conversation): readonly string[] =>
  turns.flatMap(({ blocks }) =>
    blocks.flatMap((block) => (block.type === 'tool-call' ? [block.id] : [])),
  );

/** Handles one try of one hop. It changes the session only at the true end of the stream. */
export class HopInterceptor implements Interceptor {
  readonly #fold = new ReplyBuilder();
  /** The calls held back, with their positions in the fold. */
  readonly #heldCalls: { readonly position: number; readonly call: ServerCall }[] = [];
  readonly #clientCallIds: string[] = [];
  readonly #readsCitations: boolean;
  /** The next free block index on the client's side. */
  #blockCount: number;
  #foldedBlocks = 0;
  /** Text that the client got in this hop. */
  #text = '';
  #usage: Usage | undefined;
  #open: OpenBlock = HELD;
  #finish: FinishEvent | undefined;
  /** Another hop or a tool round follows, so this hop's ending is held back. */
  #continues = false;
  #ended = false;
  /** Ids of the calls that the upstream knows, this turn's included. */
  #takenIds: Set<string> | undefined;
  /** Events that wait for the first content: until then a failed try can be repeated unseen. */
  #waiting: StreamEvent[] | undefined;

  constructor(private readonly options: HopOptions) {
    const { session, offer, lead } = options;
    this.#blockCount =
      session.blockCount + lead.filter((event) => event.type === 'block-start').length;
    this.#readsCitations =
      offer.tools.some(({ declared }) => declared !== undefined) && session.sources.size > 0;
    this.#waiting = lead.length > 0 ? [] : undefined;
  }

  event(event: StreamEvent): StreamEvent | readonly StreamEvent[] {
    const out = this.#handle(event);
    if (this.#waiting === undefined || event.type === 'start' || event.type === 'error') return out;
    const list = Array.isArray(out) ? (out as readonly StreamEvent[]) : [out as StreamEvent];
    if (!isSemantic(event) && event.type !== 'finish') {
      this.#waiting.push(...list);
      return [];
    }
    const all = [...this.options.lead, ...this.#waiting, ...list];
    this.#waiting = undefined;
    return all;
  }

  end(): readonly StreamEvent[] {
    return [];
  }

  continuation(): Continuation | undefined {
    if (!this.#continues || !this.#ended) return undefined;
    const { session, base, hop } = this.options;
    const hasClientCalls = this.#clientCallIds.length > 0;
    return {
      last: hasClientCalls,
      run: async (signal, emit) => {
        this.#commit();
        await runRound(session, this.#turnBlocks(true), this.#serverCalls(), { signal, emit, hop });
        const original = session.base ?? base;
        if (!hasClientCalls) return nextConversation(session, original);
        storeAnswer(session);
        const usage = session.totalUsage(undefined);
        emit([
          ...(usage === undefined ? [] : [{ type: 'usage', usage } as const]),
          this.#finish ?? { type: 'finish', reason: 'tool-calls' },
          { type: 'end' },
        ]);
        return original;
      },
    };
  }

  #handle(event: StreamEvent): StreamEvent | readonly StreamEvent[] {
    this.#fold.push(event);
    const { session, hop } = this.options;
    switch (event.type) {
      case 'start':
        this.#usage = event.usage ?? this.#usage;
        if (hop > 1) return [];
        // A response object repeats its request, with our tools in it, and its events are numbered
        // through: none of the upstream's own bytes may be forwarded.
        return session.options.client === 'openai-responses' ? { ...event } : event;
      case 'block-start':
        return this.#startBlock(event);
      case 'delta':
      case 'sealed':
      case 'citation':
      case 'logprobs':
        return this.#inBlock(event);
      case 'block-stop':
        return this.#stopBlock(event);
      case 'usage': {
        this.#usage = event.usage;
        if (this.#continues) return [];
        if (session.usage === undefined && !this.#hasHostedRuns()) return event;
        const usage = session.totalUsage(this.#usage);
        return usage === undefined ? [] : { type: 'usage', usage };
      }
      case 'finish':
        return this.#finished(event);
      case 'end':
        this.#ended = true;
        if (this.#continues) return [];
        this.#complete();
        return event;
      case 'opaque':
        // `message_delta` describes the whole answer, which this hop is only a part of.
        return this.#continues || (this.#heldCalls.length > 0 && event.name === 'message_delta')
          ? []
          : event;
      case 'error':
      case 'tool-event':
        return event;
    }
  }

  #startBlock(event: StreamEvent & { type: 'block-start' }): StreamEvent | readonly StreamEvent[] {
    const { head } = event;
    const { offer, session } = this.options;
    if (head.type === 'tool-call' && head.by === 'client' && head.namespace === undefined) {
      const offered = offer.byName(head.name);
      if (offered !== undefined) {
        this.#open = HELD;
        const id = this.#freeId(head.id);
        this.#heldCalls.push({ position: this.#foldedBlocks, call: { id, offered, input: '' } });
        return [];
      }
    }
    if (head.type === 'text' && this.#readsCitations) {
      const counter = { take: () => this.#blockCount++ };
      const text = new CitedText(session.options.client, (n) => session.sources.get(n), counter);
      this.#open = { kind: 'cited', text };
      return [text.start(head)];
    }
    const index = this.#blockCount++;
    const isText = head.type === 'text' || head.type === 'refusal';
    this.#open = { kind: 'plain', index, isText, first: isText };
    const withId = this.#withId(head);
    return index === event.index && withId === head ? event : { ...event, index, head: withId };
  }

  #inBlock(event: Extract<StreamEvent, { index: number }>) {
    const open = this.#open;
    if (open.kind === 'held') return [];
    if (open.kind === 'cited') {
      if (event.type === 'delta') {
        const gap = event.text === '' ? '' : this.#paragraphGap();
        return this.#countText([
          ...(gap ? open.text.push(gap) : []),
          ...open.text.push(event.text),
        ]);
      }
      // A vendor's own citation goes to the client's current block, which may not be the first.
      return [{ ...event, index: open.text.index }];
    }
    const { index } = open;
    if (open.isText && event.type === 'delta' && event.text !== '') {
      const gap = open.first ? this.#paragraphGap() : '';
      open.first = false;
      this.#text += gap + event.text;
      if (gap !== '') return { ...event, index, text: gap + event.text };
    }
    return index === event.index ? event : { ...event, index };
  }

  #stopBlock(event: StreamEvent & { type: 'block-stop' }) {
    this.#foldedBlocks++;
    const open = this.#open;
    this.#open = HELD;
    if (open.kind === 'held') return [];
    if (open.kind === 'cited') return this.#countText(open.text.end());
    return open.index === event.index ? event : { ...event, index: open.index };
  }

  #finished(event: FinishEvent): StreamEvent | readonly StreamEvent[] {
    const { session, last, notes } = this.options;
    this.#finish = event;
    const { reason } = event;
    this.#continues =
      !last && (reason === 'pause' || (this.#heldCalls.length > 0 && RUNS_AFTER.has(reason)));
    if (reason === 'pause') {
      if (this.#continues) notes.add('paused_turn_continued', 'finish');
      else notes.add('paused_turn_unfinished', 'finish', 'limits.tool_rounds');
    }
    if (this.#continues) return [];
    const end = this.#ending(event);
    const changed = session.usage !== undefined || this.#hasHostedRuns();
    const usage = changed ? session.totalUsage(this.#usage) : undefined;
    return usage === undefined ? end : [{ type: 'usage', usage }, end];
  }

  /** A `tool-calls` ending needs a call of the client's. */
  #ending(event: FinishEvent): FinishEvent {
    const onlyHeldCalls =
      this.#heldCalls.length > 0 &&
      this.#clientCallIds.length === 0 &&
      event.reason === 'tool-calls';
    return onlyHeldCalls ? { type: 'finish', reason: 'stop' } : event;
  }

  #hasHostedRuns(): boolean {
    return Object.keys(this.options.session.hostedRuns).length > 0;
  }

  #countText<T extends readonly StreamEvent[]>(events: T): T {
    for (const event of events) if (event.type === 'delta') this.#text += event.text;
    return events;
  }

  /** Chat joins all text into one string, so the texts of two hops become two paragraphs. */
  #paragraphGap(): string {
    const { options, clientText } = this.options.session;
    if (options.client !== 'openai-chat' || this.#text !== '' || clientText === '') return '';
    return clientText.endsWith('\n') ? '' : '\n\n';
  }

  /**
   * The id itself, or a new one where it is empty or taken. Some vendors count from 0 in every answer;
   * with hidden calls in the history the same id would stand there twice, which other vendors refuse.
   */
  #freeId(id: string): string {
    this.#takenIds ??= new Set(callIds(this.options.sent));
    const free = id === '' || this.#takenIds.has(id) ? prefixedId('call_') : id;
    this.#takenIds.add(free);
    return free;
  }

  /** Gives a client's call an id where it has none: the turn is found again by it. */
  #withId(head: BlockHead): BlockHead {
    if (head.type !== 'tool-call' || head.by !== 'client') return head;
    const id = this.#freeId(head.id);
    this.#clientCallIds.push(id);
    return id === head.id ? head : { ...head, id };
  }

  #commit(): void {
    this.options.session.commit({
      base: this.options.base,
      blockCount: this.#blockCount,
      text: this.#text,
      clientCallIds: this.#clientCallIds,
      usage: this.#usage,
    });
  }

  /** The hop is the last one and came to its true end. */
  #complete(): void {
    this.#commit();
    const { session } = this.options;
    if (session.addedTurns.length === 0) return;
    const blocks = this.#turnBlocks(false);
    if (blocks.length > 0) {
      session.addedTurns = [...session.addedTurns, { role: 'assistant', blocks }];
    }
    storeAnswer(session);
  }

  /** The turn as the upstream knows it; calls have the ids that their results will name. */
  #turnBlocks(withHeldCalls: boolean): readonly Block[] {
    const serverIds = new Map(this.#heldCalls.map(({ position, call }) => [position, call.id]));
    let clientCalls = 0;
    return this.#fold.reply.blocks.flatMap((block, position) => {
      if (block.type !== 'tool-call' || block.by !== 'client') return [block];
      const serverId = serverIds.get(position);
      if (serverId !== undefined && !withHeldCalls) return [];
      const id = serverId ?? this.#clientCallIds[clientCalls++];
      return id === undefined || id === block.id ? [block] : [{ ...block, id }];
    });
  }

  /** The held calls with their complete arguments. */
  #serverCalls(): readonly ServerCall[] {
    const { blocks } = this.#fold.reply;
    return this.#heldCalls.map(({ position, call }) => {
      const block = blocks[position];
      return { ...call, input: block?.type === 'tool-call' ? block.input : '' };
    });
  }
}
