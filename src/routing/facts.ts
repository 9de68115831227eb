/** The facts of a request that routes ask about, each read from the conversation when first asked for. */

import type { Block, Conversation, ProtocolName, Settings, Turn } from '../conversation/types.ts';
import type { RouteRequest } from './request.ts';

export interface FactsInput {
  readonly model: string;
  readonly protocol: ProtocolName;
  readonly stream: boolean;
  /** Length of the body. */
  readonly bytes: number;
  readonly headers: Headers;
  /** A session id, else the request id. */
  readonly affinity: string;
  /** Milliseconds since 1970. */
  readonly time: number;
  /** Decodes the body, once, when the first fact needs it. */
  readonly conversation: () => Conversation;
}

const BYTES_PER_TOKEN = 4;
/** Below this a body cannot hold media that would spoil the estimate by much, so it is not decoded for it. */
const SMALL_BODY = 64_000;

/** A lazy request for the router: what no rule asks for is never computed, and nothing is computed twice. */
export function requestFacts(input: FactsInput): RouteRequest {
  const { model, protocol, stream, headers, affinity, time, conversation } = input;
  const fresh = once(() => sinceUserSpoke(conversation().turns));
  const tokens = once(() => estimateTokens(input.bytes, conversation));
  const images = once(() => countMedia(fresh(), 'image'));
  const documents = once(() => countMedia(conversation().turns, 'document'));
  const toolNames = once(() =>
    conversation().tools.flatMap((tool) => (tool.type === 'hosted' ? [] : [tool.name])),
  );
  const hostedTools = once(() =>
    conversation().tools.flatMap((tool) => (tool.type === 'hosted' ? [tool.name] : [])),
  );
  const background = once(() => isBackground(conversation()));
  const lastUserText = once(() =>
    fresh()
      .filter((turn) => isFresh(turn))
      .flatMap((turn) => turn.blocks.flatMap(textOf))
      .join('\n'),
  );
  return {
    model,
    protocol,
    stream,
    headers,
    affinity,
    time,
    get tokens() {
      return tokens();
    },
    get images() {
      return images();
    },
    get documents() {
      return documents();
    },
    get toolNames() {
      return toolNames();
    },
    get hostedTools() {
      return hostedTools();
    },
    get thinking() {
      return isThinking(conversation().settings);
    },
    get effort() {
      return conversation().settings.reasoning?.effort;
    },
    get background() {
      return background();
    },
    get lastUserText() {
      return lastUserText();
    },
  };
}

function once<T>(compute: () => T): () => T {
  let done = false;
  let value: T;
  return () => {
    if (!done) {
      value = compute();
      done = true;
    }
    return value;
  };
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
function estimateTokens(bytes: number, conversation: () => Conversation): number {
  let text = bytes;
  if (bytes >= SMALL_BODY) {
    const visit = (block: Block) => {
      if (block.type === 'media' && block.source.type === 'base64')
        text -= block.source.data.length;
      else if (block.type === 'tool-result') block.content.forEach(visit);
    };
    for (const turn of conversation().turns) turn.blocks.forEach(visit);
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
