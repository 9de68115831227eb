/** The facts of a request that routes ask about, each read from the conversation when first asked for. */

import type { Block, Conversation, ProtocolName, Settings, Turn } from '../conversation/types.ts';
import { containsAny, needles } from '../lib/bytes/bytes.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import { estimateMedia } from './media-tokens.ts';
import type { RouteRequest } from './request.ts';

export interface FactsInput {
  readonly model: string;
  readonly protocol: ProtocolName;
  readonly stream: boolean;
  /** Length of the body. */
  readonly bytes: number;
  readonly headers: ReadonlyHeaders;
  /** A session id, else the request id. */
  readonly affinity: string;
  /** Milliseconds since 1970; left out: when first asked for. */
  readonly time?: number;
  /** Its conversation is read when the first fact needs it, which may decode the body. */
  readonly asked: Asked;
}

interface Asked {
  readonly conversation: Conversation;
  /** The body, where it is at hand. */
  readonly bytes?: Buffer;
}

const BYTES_PER_TOKEN = 4;
const BYTES_PER_TOKEN_OF_LETTERS = 5.6;
/** Bytes at either end of a body that tell which letters it is written in. */
const SAMPLED = 32_768;
/** A smaller body is decoded for its media only where it seems to hold any. */
const SMALL_BODY = 64_000;
/** As all protocols name images and documents. */
const MEDIA = needles('"image', '"input_image', '"input_file', '"document"', '"file"');

/** A lazy request for the router: what no rule asks for is never computed, and nothing is computed twice. */
export function requestFacts(input: FactsInput): RouteRequest {
  return new Facts(input);
}

/** What was computed. An object of its own: a request under another name shares it with its original. */
interface Known {
  time?: number;
  fresh?: readonly Turn[];
  tokens?: number;
  images?: number;
  documents?: number;
  toolNames?: readonly string[];
  hostedTools?: readonly string[];
  background?: boolean;
  lastUserText?: string;
}

class Facts implements RouteRequest {
  readonly model: string;
  readonly protocol: ProtocolName;
  readonly stream: boolean;
  readonly headers: ReadonlyHeaders;
  readonly affinity: string;
  // No `#` names: `withModel` makes objects that have this one for their prototype.
  private readonly bytes: number;
  private readonly asked: Asked;
  private readonly known: Known = {};

  constructor(input: FactsInput) {
    this.model = input.model;
    this.protocol = input.protocol;
    this.stream = input.stream;
    this.headers = input.headers;
    this.affinity = input.affinity;
    if (input.time !== undefined) this.known.time = input.time;
    this.bytes = input.bytes;
    this.asked = input.asked;
  }

  get time(): number {
    this.known.time ??= Date.now();
    return this.known.time;
  }

  private get fresh(): readonly Turn[] {
    this.known.fresh ??= sinceUserSpoke(this.asked.conversation.turns);
    return this.known.fresh;
  }

  get tokens(): number {
    this.known.tokens ??= estimateTokens(this.bytes, this.asked, this.protocol, this.model);
    return this.known.tokens;
  }

  get images(): number {
    this.known.images ??= countMedia(this.fresh, 'image');
    return this.known.images;
  }

  get documents(): number {
    this.known.documents ??= countMedia(this.asked.conversation.turns, 'document');
    return this.known.documents;
  }

  get toolNames(): readonly string[] {
    this.known.toolNames ??= this.asked.conversation.tools.flatMap((tool) =>
      tool.type === 'hosted' ? [] : [tool.name],
    );
    return this.known.toolNames;
  }

  get hostedTools(): readonly string[] {
    this.known.hostedTools ??= this.asked.conversation.tools.flatMap((tool) =>
      tool.type === 'hosted' ? [tool.name] : [],
    );
    return this.known.hostedTools;
  }

  get thinking(): boolean {
    return isThinking(this.asked.conversation.settings);
  }

  get effort(): string | undefined {
    return this.asked.conversation.settings.reasoning?.effort;
  }

  get background(): boolean {
    this.known.background ??= isBackground(this.asked.conversation);
    return this.known.background;
  }

  get lastUserText(): string {
    this.known.lastUserText ??= this.fresh
      .filter((turn) => isFresh(turn))
      .flatMap((turn) => turn.blocks.flatMap(textOf))
      .join('\n');
    return this.known.lastUserText;
  }
}

/** A turn in which the user says something, and not only a tool's result comes back. */
const isFresh = (turn: Turn) =>
  turn.role === 'user' && !turn.blocks.some((block) => block.type === 'tool-result');

/**
 * The turns from the user's last own words to the end. In the middle of a tool loop the last turn is
 * a result; the picture that the user asked about stands before it and must still be seen.
 */
function sinceUserSpoke(turns: readonly Turn[]): readonly Turn[] {
  let start = turns.findLastIndex(isFresh);
  if (start < 0) return turns;
  while (start > 0 && (isFresh(turns[start - 1]!) || turns[start - 1]!.role === 'system')) start--;
  return turns.slice(start);
}

function countMedia(turns: readonly Turn[], media: 'image' | 'document'): number {
  let count = 0;
  const visit = (block: Block) => {
    if (block.type === 'media' && block.media === media) count++;
    else if (block.type === 'tool-result') block.content.forEach(visit);
  };
  for (const turn of turns) turn.blocks.forEach(visit);
  return count;
}

/**
 * Bytes by four; letters that take two bytes are fewer tokens than that. Media count by their sizes and not by
 * their bytes: base64 would make every picture a long context.
 */
function estimateTokens(
  bytes: number,
  asked: Asked,
  protocol: ProtocolName,
  model: string,
): number {
  let text = bytes;
  let media = 0;
  if (bytes >= SMALL_BODY || (asked.bytes !== undefined && containsAny(asked.bytes, MEDIA))) {
    const visit = (block: Block) => {
      if (block.type === 'tool-result') block.content.forEach(visit);
      if (block.type !== 'media') return;
      media += estimateMedia(block, protocol, model);
      if (block.source.type === 'base64') text -= block.source.data.length;
      else if (block.source.type === 'text') text -= block.source.text.length;
    };
    for (const turn of asked.conversation.turns) turn.blocks.forEach(visit);
  }
  const letters = asked.bytes === undefined ? 0 : shareOfLetters(asked.bytes);
  const perByte = (1 - letters) / BYTES_PER_TOKEN + letters / BYTES_PER_TOKEN_OF_LETTERS;
  return Math.ceil(Math.max(0, text) * perByte) + media;
}

/**
 * Which part of a body is letters of two bytes (Greek, Cyrillic, Hebrew, Arabic), by its beginning and end.
 * Such words come to 2.8 letters a token, measured with o200k on Russian.
 */
function shareOfLetters(bytes: Uint8Array): number {
  const whole = bytes.length <= 2 * SAMPLED;
  let leads = 0;
  const count = (part: Uint8Array) => {
    for (let at = 0; at < part.length; at++) if (part[at]! >= 0xcd && part[at]! <= 0xdf) leads++;
  };
  count(whole ? bytes : bytes.subarray(0, SAMPLED));
  if (!whole) count(bytes.subarray(-SAMPLED));
  // Far fewer are accents and signs in other texts.
  const share = (2 * leads) / Math.max(1, Math.min(bytes.length, 2 * SAMPLED));
  return share < 0.05 ? 0 : Math.min(1, share);
}

function isThinking({ reasoning }: Settings): boolean {
  if (reasoning === undefined || reasoning.enabled === false) return false;
  if (reasoning.enabled || reasoning.adaptive || (reasoning.budget ?? 0) > 0) return true;
  return reasoning.effort !== undefined && reasoning.effort !== 'none';
}

/** Words in the instructions of agents' title requests. */
const TITLE_WORDS =
  /\btitle generator\b|\b(generate|write|create) (a|an) (\w+,? ){0,4}title\b|\bnaming a (\w+ )?session\b/i;
const HEAD = 4096;

/** A request for a title: no tools, and either a schema that wants one or instructions that say so. */
function isBackground(conversation: Conversation): boolean {
  if (conversation.tools.length > 0) return false;
  const { format } = conversation.settings;
  if (format?.type === 'schema') {
    const properties = format.schema.properties;
    const keys = typeof properties === 'object' && properties ? Object.keys(properties) : [];
    if (keys.includes('title') && keys.length <= 2) return true;
  }
  const instructions = [
    ...conversation.system,
    ...conversation.turns
      .filter((turn) => turn.role === 'system' || turn.role === 'developer')
      .flatMap((turn) => turn.blocks),
  ];
  return instructions.flatMap(textOf).some((text) => TITLE_WORDS.test(text.slice(0, HEAD)));
}

const textOf = (block: Block): readonly string[] => (block.type === 'text' ? [block.text] : []);
