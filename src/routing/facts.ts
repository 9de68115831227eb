/** The facts of a request that routes ask about, each read from the conversation when first asked for. */

import type { Block, Conversation, ProtocolName, Settings, Turn } from '../conversation/types.ts';
import type { HeaderFields } from '../lib/header-list.ts';
import type { RouteRequest } from './request.ts';

export interface FactsInput {
  readonly model: string;
  readonly protocol: ProtocolName;
  readonly stream: boolean;
  /** Length of the body. */
  readonly bytes: number;
  readonly headers: HeaderFields;
  /** A session id, else the request id. */
  readonly affinity: string;
  /** Milliseconds since 1970; left out: when first asked for. */
  readonly time?: number;
  /** Its conversation is read when the first fact needs it, which may decode the body. */
  readonly asked: Asked;
}

interface Asked {
  readonly conversation: Conversation;
}

const BYTES_PER_TOKEN = 4;
/** Below this a body cannot hold media that would spoil the estimate by much, so it is not decoded for it. */
const SMALL_BODY = 64_000;

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
  readonly headers: HeaderFields;
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
    this.known.tokens ??= estimateTokens(this.bytes, this.asked);
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

/** Bytes by four, media left out: base64 would make every picture a long context. */
function estimateTokens(bytes: number, asked: Asked): number {
  let text = bytes;
  if (bytes >= SMALL_BODY) {
    const visit = (block: Block) => {
      if (block.type === 'media' && block.source.type === 'base64')
        text -= block.source.data.length;
      else if (block.type === 'tool-result') block.content.forEach(visit);
    };
    for (const turn of asked.conversation.turns) turn.blocks.forEach(visit);
  }
  return Math.ceil(Math.max(0, text) / BYTES_PER_TOKEN);
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
