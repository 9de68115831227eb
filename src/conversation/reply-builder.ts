/** Builds a whole reply from stream events, and stream events from a whole reply. */

import type { Json } from '../lib/json/json.ts';
import type { BlockHead, OpaqueEvent, Reply, ReplySeal, StreamEvent, ToolEvent } from './events.ts';
import type { Block, Citation, Sealed } from './types.ts';

/** Collects a stream into a reply. Push every event in order, then read `reply`. */
export class ReplyBuilder {
  #id = '';
  #model = '';
  #created: number | undefined;
  #rest: Reply['rest'];
  #usage: Reply['usage'];
  #finish: Pick<Reply, 'finish' | 'oddFinish' | 'stopSequence' | 'details'> | undefined;
  #blocks: Block[] = [];
  #head: BlockHead | undefined;
  #text: string[] = [];
  #citations: Citation[] = [];
  #sealed: Sealed | undefined;
  #logprobs: Json[] = [];
  #toolEvents: ToolEvent[] = [];
  #textSeals: ReplySeal[] = [];
  #further: OpaqueEvent[] = [];
  #complete = false;

  push(event: StreamEvent): void {
    switch (event.type) {
      case 'start':
        this.#id = event.id;
        this.#model = event.model;
        this.#created = event.created;
        this.#rest = event.rest;
        this.#usage = event.usage ?? this.#usage;
        break;
      case 'block-start':
        this.#head = event.head;
        this.#text = [];
        this.#citations = [];
        this.#sealed = undefined;
        break;
      case 'delta':
        if (event.newPart && this.#text.some((part) => part !== '')) this.#text.push('\n\n');
        this.#text.push(event.text);
        break;
      case 'sealed':
        this.#sealed = event.sealed;
        break;
      case 'citation':
        this.#citations.push(event.citation);
        break;
      case 'logprobs':
        for (const token of event.content) this.#logprobs.push(token);
        break;
      case 'block-stop':
        if (this.#head !== undefined) this.#blocks.push(this.#block(this.#head));
        this.#head = undefined;
        break;
      case 'usage':
        this.#usage = event.usage;
        break;
      case 'finish':
        this.#finish = {
          finish: event.reason,
          oddFinish: event.odd && 'finish_reason',
          stopSequence: event.stopSequence,
          details: event.details,
        };
        break;
      case 'end':
        this.#complete = true;
        break;
      case 'tool-event':
        this.#toolEvents.push(event);
        break;
      case 'opaque':
        if (event.textSeal !== undefined) {
          const at = this.#head?.type === 'text' ? lengthOf(this.#text) : 0;
          this.#textSeals.push({ block: this.#blocks.length, at, event });
        } else if (event.name === 'choice') this.#further.push(event);
        break;
    }
  }

  #block(head: BlockHead): Block {
    const text = this.#text.join('');
    switch (head.type) {
      case 'text':
        return { ...head, text, citations: ifAny(this.#citations) };
      case 'refusal':
        return { type: 'refusal', text };
      case 'reasoning':
        return {
          type: 'reasoning',
          text,
          summary: head.summary || undefined,
          sealed: this.#sealed,
        };
      case 'tool-call':
        return { ...head, input: text, sealed: this.#sealed ?? head.sealed };
      case 'whole':
        return head.block;
    }
  }

  /** The stream's `end` event was seen. */
  get complete(): boolean {
    return this.#complete;
  }

  /** The reply so far. It may be given to a client only if the stream is `complete`. */
  get reply(): Reply {
    return {
      id: this.#id,
      model: this.#model,
      created: this.#created,
      blocks: this.#blocks,
      ...(this.#finish ?? { finish: 'stop' }),
      usage: this.#usage,
      logprobs: ifAny(this.#logprobs),
      rest: this.#rest,
      toolEvents: ifAny(this.#toolEvents),
      textSeals: ifAny(this.#textSeals),
      further: ifAny(this.#further),
    };
  }
}

const ifAny = <T>(list: readonly T[]): readonly T[] | undefined =>
  list.length > 0 ? list : undefined;

const lengthOf = (texts: readonly string[]) => texts.reduce((sum, { length }) => sum + length, 0);

/** The events of a whole reply, for a client that wants a stream of an answer that was not streamed. */
export function* replyEvents(reply: Reply): Generator<StreamEvent> {
  yield {
    type: 'start',
    id: reply.id,
    model: reply.model,
    created: reply.created,
    usage: reply.usage,
    rest: reply.rest,
    odd: reply.odd,
  };
  let index = 0;
  let logprobs = reply.logprobs;
  const seals = reply.textSeals ?? NO_SEALS;
  let sealed = 0;
  for (const block of reply.blocks) {
    const first = sealed;
    while (seals[sealed]?.block === index) sealed++;
    yield* unfoldBlock(block, index, logprobs, seals.slice(first, sealed));
    if (block.type === 'text') logprobs = undefined;
    index++;
  }
  for (const { event } of seals.slice(sealed)) yield event;
  if (reply.further !== undefined) yield* reply.further;
  if (reply.usage !== undefined) yield { type: 'usage', usage: reply.usage };
  yield {
    type: 'finish',
    reason: reply.finish,
    odd: reply.oddFinish,
    stopSequence: reply.stopSequence,
    details: reply.details,
  };
  yield { type: 'end' };
}

const NO_SEALS: readonly ReplySeal[] = [];

function* unfoldBlock(
  block: Block,
  index: number,
  logprobs: Reply['logprobs'],
  seals: readonly ReplySeal[],
): Generator<StreamEvent> {
  if (block.type !== 'text') for (const { event } of seals) yield event;
  switch (block.type) {
    case 'text':
      yield { type: 'block-start', index, head: { type: 'text', paragraph: block.paragraph } };
      yield* unfoldText(block.text, index, seals);
      if (logprobs !== undefined) yield { type: 'logprobs', index, content: logprobs };
      for (const citation of block.citations ?? []) yield { type: 'citation', index, citation };
      break;
    case 'refusal':
      yield { type: 'block-start', index, head: { type: 'refusal' } };
      yield { type: 'delta', index, text: block.text };
      break;
    case 'reasoning':
      if (block.sealed?.kind === 'redacted') {
        yield { type: 'block-start', index, head: { type: 'whole', block } };
        break;
      }
      yield { type: 'block-start', index, head: { type: 'reasoning', summary: block.summary } };
      if (block.text !== '') yield { type: 'delta', index, text: block.text };
      if (block.sealed !== undefined) yield { type: 'sealed', index, sealed: block.sealed };
      break;
    case 'tool-call': {
      const { type, id, name, namespace, kind, by, odd, sealed } = block;
      const residue = block.wire ?? block.residue;
      const head = { type, id, name, namespace, kind, by, odd, sealed, residue };
      yield { type: 'block-start', index, head };
      if (block.input !== '') yield { type: 'delta', index, text: block.input };
      break;
    }
    default:
      yield { type: 'block-start', index, head: { type: 'whole', block } };
  }
  yield { type: 'block-stop', index };
}

function* unfoldText(
  text: string,
  index: number,
  seals: readonly ReplySeal[],
): Generator<StreamEvent> {
  let from = 0;
  for (const { at, event } of seals) {
    if (at > from) yield { type: 'delta', index, text: text.slice(from, at) };
    from = Math.max(from, at);
    yield event;
  }
  if (from < text.length) yield { type: 'delta', index, text: text.slice(from) };
}
