/** Joins a chat app's conversation and the server-tool loop: its tools, its memory, and what must not outlive a turn. */

import type { Memory } from '../conversation/memory.ts';
import type { Target } from '../conversation/target.ts';
import {
  type ConversationParts,
  type ConversationTool,
  conversationParts,
  joinedExtension,
  type Locale,
  type Texts,
  unknownHeaders,
} from '../features/chat-apps/index.ts';
import type { Feature, FeatureContext } from '../features/feature.ts';
import {
  type HopEntry,
  type HopLedger,
  type ToolRegistry,
  toolRegistry,
} from '../features/server-tools/index.ts';
import type { ServerTool } from '../features/server-tools/tool.ts';
import type { ClientRequest } from '../gateway/client-request.ts';
import type { Exchange } from '../gateway/types.ts';
import type { ReadonlyHeaders } from '../lib/http/headers.ts';
import { bothAhead, renamed } from '../state/key-value/room.ts';
import { event, type Log } from '../telemetry/log.ts';

export interface ConversationSetup {
  readonly memory: Memory | undefined;
  readonly settings: { readonly locale: Locale | 'auto'; readonly texts: Partial<Texts> };
  readonly log: Log;
  /** Markup of a leaked call was left in a reply, and taken out. */
  onMarkup(target: Target): void;
}

/** Undefined for a request without any extension. @throws GatewayError for an extension that cannot be read or asks for another's space */
export function conversationOf(
  exchange: Exchange,
  ask: ClientRequest,
  setup: ConversationSetup,
): ConversationParts | undefined {
  // Most requests ask for nothing of the kind.
  return joinedExtension(ask.extension, exchange.headers) === undefined
    ? undefined
    : partsOf(exchange, ask, setup);
}

function partsOf(
  { headers, principal, id }: Exchange,
  ask: ClientRequest,
  setup: ConversationSetup,
): ConversationParts | undefined {
  const { memory, settings, log, onMarkup } = setup;
  return conversationParts({
    extension: ask.extension,
    headers,
    request: () => ask.conversation,
    memory: memory && { ...memory, capture: ofKey(memory, principal.id) },
    mayUse: (space) => principal.policy.allowsSpace(space),
    locale: settings.locale,
    texts: settings.texts,
    onMarkup,
    // Words of the conversation are for a log that was turned up to hold them.
    onQuery: (query, events) =>
      event(log, 'memory.recalled', { id, tool_name: 'recall_memory', query, events }, 'debug'),
    onCaptureFailed: (thrown) =>
      event(log, 'memory.capture.failed', { id, message: String(thrown) }, 'error'),
  });
}

/** Captured events count toward the share of the exchange's key. */
const ofKey =
  ({ capture }: Memory, key: string): Memory['capture'] =>
  (space, events, began, turn) =>
    capture(space, events, began, turn, key);

/** Names headers that look like the gateway's own and mean nothing here. Undefined where there is none. */
export function strayHeaders(headers: ReadonlyHeaders): Feature | undefined {
  const names = unknownHeaders(headers);
  return names.length === 0 ? undefined : new StrayHeaders(names);
}

class StrayHeaders implements Feature {
  readonly name = 'stray-headers';

  constructor(private readonly names: readonly string[]) {}

  // All that there is to do is said here: the body need not be decoded for it.
  mayApply(_: Uint8Array, { notes }: FeatureContext): boolean {
    for (const name of this.names)
      notes.add('unknown_header_ignored', name, 'it means nothing here');
    return false;
  }
}

/** The registry with the conversation's tools in front: they are asked for by name, in this very request. */
export function withConversationTools(
  registry: ToolRegistry,
  tools: readonly ConversationTool[],
): ToolRegistry {
  return tools.length === 0 ? registry : joinedRegistry(registry, tools);
}

function joinedRegistry(registry: ToolRegistry, tools: readonly ConversationTool[]): ToolRegistry {
  const own = toolRegistry(tools satisfies readonly ServerTool[]);
  const names = new Set(tools.map(({ name }) => name));
  let from: readonly ServerTool[] | undefined;
  let all: readonly ServerTool[] = [];
  return {
    get tools() {
      const { tools: others } = registry;
      if (others !== from) {
        from = others;
        all = [...tools, ...others.filter(({ name }) => !names.has(name))];
      }
      return all;
    },
    named: (name) => own.named(name) ?? registry.named(name),
    standIn: (hosted) => registry.standIn(hosted),
    get starting() {
      return registry.starting === true;
    },
    ready: async (signal, said) => registry.ready?.(signal, said),
  };
}

/**
 * The ledger of one conversation. What was recalled stays out of the one on disk: another space must
 * never see it, and an erased space must be gone. It is kept apart for a turn that goes on with the
 * client's own calls, under this conversation's name.
 */
export function turnLedger(
  disk: HopLedger,
  turns: HopLedger,
  tools: readonly ConversationTool[],
  scope: string,
): HopLedger {
  const names = new Set(tools.map(({ name }) => name));
  const own = renamed(turns, (key) => `${scope}\0${key}`);
  const isOurs = ({ turns: said }: HopEntry) =>
    said.some(({ blocks }) =>
      blocks.some((block) => block.type === 'tool-call' && names.has(block.name)),
    );
  return {
    get empty() {
      return disk.empty && turns.empty;
    },
    prefetch: bothAhead(disk.prefetch, own.prefetch),
    find: (keys) => own.find(keys) ?? disk.find(keys),
    put(keys, entry) {
      if (!isOurs(entry)) disk.put(keys, entry);
      else if (entry.clientCalls.length > 0) own.put(keys, entry);
    },
    settled: (keys) => disk.settled(keys),
  };
}
