/** Blocks of an answer as a Messages client gets them, shared by whole replies and streams. */

import { wrapSeal, wrapUnsealed } from '../../../conversation/seal.ts';
import { wrapCallId } from '../../../conversation/tools/call-ids.ts';
import { type ToolNames, toolNames } from '../../../conversation/tools/tool-names.ts';
import type {
  ExecutedBy,
  MediaBlock,
  Sealed,
  ToolResultBlock,
} from '../../../conversation/types.ts';
import { isObject, type JsonObject } from '../../../lib/json/json.ts';
import { prefixedId } from '../../../lib/text/ids.ts';
import type { ClientContext } from '../../codec.ts';
import {
  type EncodedHostedTool,
  encodedHostedTool,
  encodeHostedResult,
  hostedCallId,
} from '../hosted-tools.ts';
import { ownResidue, ownWire, PROTOCOL, TOOL_NAME_LIMIT } from '../wire.ts';

/** The signature that a client keeps and gives back: the maker's own, carried, or minted. */
export function clientSignature(sealed: Sealed | undefined, provider: string): string {
  if (sealed === undefined) return wrapUnsealed('openai-chat', provider);
  return sealed.protocol === PROTOCOL ? sealed.value : wrapSeal(sealed);
}

/** There is something to give back: an empty signature says no more than none. */
export const isSealed = (sealed: Sealed | undefined): sealed is Sealed =>
  sealed !== undefined && sealed.value !== '';

/** What a client's view of calls depends on. */
export interface ClientTools {
  readonly names: ToolNames;
  /** Hosted tools that the client declared; blocks of others would be unknown to it. */
  readonly declared: ReadonlySet<string>;
}

export function clientTools(context: ClientContext): ClientTools {
  const { tools } = context.request;
  return {
    names: toolNames(tools, TOOL_NAME_LIMIT),
    declared: new Set(tools.filter((tool) => tool.type === 'hosted').map((tool) => tool.name)),
  };
}

interface CallIdentity {
  readonly id: string;
  readonly name: string;
  readonly namespace?: string;
  readonly by: ExecutedBy;
}

/** How a call opens for the client; `tells` marks a hosted call told in this wire's words. */
export interface CallHead {
  readonly block: JsonObject;
  readonly hostedTool: EncodedHostedTool | undefined;
}

/** A hosted call told to the client that still wants its result. */
export interface AwaitedResult {
  /** The call's id on the wire. */
  readonly id: string;
  readonly tool: EncodedHostedTool;
}

/**
 * The head of a call, with empty input. Undefined for a hosted call of another protocol that this
 * client did not ask for or this wire has no block for.
 */
export function callHead(
  call: CallIdentity & Parameters<typeof ownResidue>[0],
  tools: ClientTools,
): CallHead | undefined {
  const residue = ownResidue(call);
  const extras = isObject(residue) ? residue : undefined;
  if (call.by === 'client') {
    const name = tools.names.flat(call.name, call.namespace);
    const id = call.id === '' ? prefixedId('toolu_') : wrapCallId(call.id);
    const { type: _type, id: _id, name: _name, input: _input, ...rest } = extras ?? {};
    return { block: { type: 'tool_use', id, name, input: {}, ...rest }, hostedTool: undefined };
  }
  if (extras !== undefined) return { block: { ...extras, input: {} }, hostedTool: undefined };
  const hostedTool = encodedHostedTool(call.name);
  if (hostedTool === undefined || !tools.declared.has(hostedTool)) return undefined;
  const id = hostedCallId(call.id === '' ? prefixedId('') : call.id);
  return { block: { type: 'server_tool_use', id, name: hostedTool, input: {} }, hostedTool };
}

/** The result of a hosted call, told in this wire's words; `result` undefined: none came. */
export function hostedResultBlock(
  { id, tool }: AwaitedResult,
  result: ToolResultBlock | undefined,
): JsonObject {
  return {
    type: `${tool}_tool_result`,
    tool_use_id: id,
    content: encodeHostedResult(tool, result),
  };
}

/** Media that a model made: Messages answers have no block for it. */
export function mediaText(block: MediaBlock): string {
  return block.source.type === 'url' && !block.source.url.startsWith('data:')
    ? block.source.url
    : `[${block.media} omitted]`;
}

/** A whole block of this wire, if it is one. */
export function ownBlock(block: Parameters<typeof ownWire>[0]): JsonObject | undefined {
  const wire = ownWire(block);
  return isObject(wire) ? wire : undefined;
}

/** `msg_…`, whatever the upstream called its answer. */
export function messageId(id: string, requestId: string): string {
  if (id.startsWith('msg_')) return id;
  const stem = (id === '' ? requestId.replace(/^req_/, '') : id).replace(/[^a-zA-Z0-9_-]/g, '');
  return `msg_${stem}`;
}

const TIERS = new Set(['standard', 'priority', 'batch']);

/** Vendor fields beside usage that this wire knows: which tier and region served. */
export function servedBy(rest: JsonObject | undefined): JsonObject {
  const tier = rest?.service_tier;
  const geo = rest?.inference_geo;
  return {
    ...(typeof tier === 'string' && TIERS.has(tier) ? { service_tier: tier } : {}),
    ...(typeof geo === 'string' ? { inference_geo: geo } : {}),
  };
}
