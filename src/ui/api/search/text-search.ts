/** Full-text search over exchanges: on disk by the index, which is filled in the background, in memory by reading them. */

import { GatewayError } from '../../../conversation/errors.ts';
import type { Block } from '../../../conversation/types.ts';
import { Rests, runInSlices, type Steps } from '../../../lib/loop/steps.ts';
import { quotedWords } from '../../../lib/text/quoted-words.ts';
import type { ReadingParts } from '../../../samples/decode/decode-body.ts';
import type { RecentSamples } from '../../../samples/record/recent.ts';
import type { SaidText, SampleMeta, SampleStore } from '../../../samples/sample.ts';
import { type Recorded, saidIn } from '../bodies/said.ts';

export interface TextSearchOptions {
  readonly store: () => SampleStore;
  readonly recent: RecentSamples | undefined;
  readonly parts: ReadingParts;
  /** Largest share of time that reading takes; 1: there is nothing else to do meanwhile. */
  readonly share?: number;
}

/** A place in a text, with a few words around it. */
export interface Hit {
  readonly before: string;
  readonly hit: string;
  readonly after: string;
}

/** What a search found. */
export interface Found {
  readonly ids: readonly string[];
  /** Only the newest texts were looked at: very many fit. */
  readonly partial: boolean;
  /** Exchanges that were not read yet when the search began: it may have missed them. */
  readonly unread: number;
  /** The place in the text of an exchange. */
  snippet(id: string): Hit | undefined;
}

/** Other requests have the rest. */
const SHARE = 0.2;
/** Exchanges whose ids are asked for at once. */
const BATCH = 50;
/** Milliseconds until reading that failed is tried again; the next exchange begins it sooner. */
const RETRY_MS = 5000;
/** Milliseconds for which the result of a search is kept. */
const KEPT = 2000;

export class TextSearch {
  readonly #options: TextSearchOptions;
  #reading: Promise<void> | undefined;
  #again = false;
  #closed = false;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #last:
    | {
        readonly q: string;
        readonly owner: string | undefined;
        readonly until: number;
        readonly found: Promise<Found>;
      }
    | undefined;
  /** Texts of exchanges in memory that are over. */
  readonly #recent = new Map<string, readonly string[]>();

  constructor(options: TextSearchOptions) {
    this.#options = options;
  }

  /** Begins to read exchanges that are not in the index yet. Resolves when all are read, or reading failed. */
  read(): Promise<void> {
    if (this.#closed) return Promise.resolve();
    this.#again = true;
    this.#reading ??= this.#readAll().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /** Finds exchanges that said all words of `q` in one text; a part between quotes counts as one word. @param owner only exchanges of this one */
  find(q: string, owner?: string): Promise<Found> {
    const now = performance.now();
    const last = this.#last;
    if (last?.q === q && last.owner === owner && now < last.until) return last.found;
    const found = this.#find(quotedWords(q), owner);
    this.#last = { q, owner, until: now + KEPT, found };
    return found;
  }

  /** Resolves when nothing is being read. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#retry);
    await this.#reading;
  }

  async #find(words: readonly string[], owner: string | undefined): Promise<Found> {
    if (words.length === 0) {
      return { ids: [], partial: false, unread: 0, snippet: () => undefined };
    }
    const { store } = this.#options;
    const { texts } = store();
    // Not afterwards: what is read meanwhile is not among the hits.
    const { unread } = texts.progress(owner);
    const onDisk = await runInSlices(texts.find(words, owner));
    const inMemory = await this.#findRecent(words);
    return {
      ids: [...onDisk.by.keys(), ...inMemory.keys()],
      partial: onDisk.partial,
      unread,
      snippet(id) {
        const number = onDisk.by.get(id);
        const text = inMemory.get(id) ?? (number === undefined ? undefined : texts.text(number));
        return text === undefined ? undefined : snippetOf(text, words);
      },
    };
  }

  async #findRecent(words: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const { recent, store, parts } = this.#options;
    const found = new Map<string, string>();
    const held = new Set<string>();
    const lower = words.map((word) => word.toLowerCase());
    const { rest } = new Rests();
    for (const { id, state } of recent?.rows() ?? []) {
      held.add(id);
      let texts = this.#recent.get(id);
      if (texts === undefined) {
        await recent!.read(id);
        const meta = recent!.find(id)?.meta;
        if (meta === undefined) continue;
        const said = await runInSlices(textsOf({ store: store(), meta, parts }));
        texts = said.flatMap(({ text, added }) => (added ? [text] : []));
        if (state !== 'open') this.#recent.set(id, texts);
      }
      await rest();
      const text = texts.find((one) => {
        const said = one.toLowerCase();
        return lower.every((word) => said.includes(word));
      });
      if (text !== undefined) found.set(id, text);
    }
    for (const id of this.#recent.keys()) if (!held.has(id)) this.#recent.delete(id);
    return found;
  }

  #readLater(): void {
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => void this.read(), RETRY_MS);
    this.#retry.unref();
  }

  /** Brings the bodies of a sample here, or finds that there are none; false: they may come later. */
  async #bring(meta: SampleMeta): Promise<boolean> {
    try {
      await this.#options.store().fetch(meta);
      return true;
    } catch (thrown) {
      return thrown instanceof GatewayError && thrown.kind === 'not_found';
    }
  }

  async #readAll(): Promise<void> {
    const { store, parts, share = SHARE } = this.#options;
    while (this.#again && !this.#closed) {
      this.#again = false;
      try {
        for (let ids = store().texts.unread(BATCH); ids.length > 0; ) {
          for (const id of ids) {
            if (this.#closed) return;
            let began = performance.now();
            const pause = async () => {
              await Bun.sleep(((performance.now() - began) * (1 - share)) / share);
              began = performance.now();
            };
            const meta = store().find(id);
            if (meta !== undefined && !(await this.#bring(meta))) return this.#readLater();
            const texts =
              meta === undefined ? [] : await runInSlices(textsOf({ store: store(), meta, parts }));
            await pause();
            for (const _ of store().texts.putInSteps(id, texts)) {
              await pause();
              if (this.#closed) return;
            }
            await pause();
          }
          ids = store().texts.unread(BATCH);
        }
      } catch {
        // The index is busy or was replaced.
        return this.#readLater();
      }
    }
  }
}

const BEFORE = 24;
const AFTER = 110;

const line = (text: string) => text.split(/\s+/).join(' ');

/** Around the first word that the text has; lower case may change lengths, the place is then a little off. */
function snippetOf(text: string, words: readonly string[]): Hit | undefined {
  const lower = text.toLowerCase();
  for (const word of words) {
    const at = lower.indexOf(word.toLowerCase());
    if (at < 0) continue;
    const [from, to] = [Math.max(0, at - BEFORE), at + word.length];
    return {
      before: `${from > 0 ? '…' : ''}${line(text.slice(from, at).toWellFormed())}`,
      hit: line(text.slice(at, to)),
      after: `${line(text.slice(to, to + AFTER).toWellFormed())}${to + AFTER < text.length ? '…' : ''}`,
    };
  }
  return undefined;
}

/** Bodies that cannot be read have no texts. */
export function* textsOf(recorded: Recorded): Steps<SaidText[]> {
  const { sent, reply } = yield* saidIn(recorded);
  const { error } = recorded.meta;
  const texts: SaidText[] = [];
  if (sent !== undefined) {
    addBlocks(sent.system, false, texts);
    // Earlier exchanges have said the turns up to the last one of the assistant.
    const last = sent.turns.findLastIndex(({ role }) => role === 'assistant');
    for (const [i, turn] of sent.turns.entries()) addBlocks(turn.blocks, i > last, texts);
  }
  if (reply !== undefined) {
    addBlocks(reply.reply.blocks, true, texts);
    if (reply.problem !== undefined) texts.push({ text: reply.problem.message, added: true });
  }
  if (error !== undefined) texts.push({ text: error.message, added: true });
  return texts;
}

function addBlocks(blocks: readonly Block[], added: boolean, texts: SaidText[]): void {
  for (const block of blocks) {
    if (block.type === 'text' || block.type === 'refusal' || block.type === 'reasoning') {
      if (block.text !== '') texts.push({ text: block.text, added });
    } else if (block.type === 'tool-call') {
      texts.push({ text: `${block.name} ${block.input}`, added });
    } else if (block.type === 'tool-result') addBlocks(block.content, added, texts);
    else if (block.type === 'opaque' && block.text !== undefined) {
      texts.push({ text: block.text, added });
    }
  }
}
