/** The parts of encoding an answer for a Messages client that whole replies and streams share. */

import { wrapSeal, wrapUnsealed } from '../../../conversation/seal.ts';
import { wrapCallId } from '../../../conversation/tools/call-ids.ts';
import { type ToolNames, toolNames } from '../../../conversation/tools/tool-names.ts';
import type {
  MediaBlock,
  Sealed,
  ToolCallBlock,
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

/** The signature for the client: the maker's own, or an envelope. */
export function clientSignature(sealed: Sealed | undefined, provider: string): string {
  if (sealed === undefined) return wrapUnsealed('openai-chat', provider);
  return sealed.protocol === PROTOCOL ? sealed.value : wrapSeal(sealed);
}

/** Is there a seal to send back? An empty signature means the same as none. */
export const isSealed = (sealed: Sealed | undefined): sealed is Sealed =>
  sealed !== undefined && sealed.value !== '';

/** The client's tools, which decide how calls are encoded. */
export interface ClientTools {
  readonly names: ToolNames;
  /** The hosted tools that the client declared. It may not know the blocks of others. */
  readonly declared: ReadonlySet<string>;
}

export function clientTools(context: ClientContext): ClientTools {
  const { tools } = context.request;
  return {
    names: toolNames(tools, TOOL_NAME_LIMIT),
    declared: new Set(tools.filter((tool) => tool.type === 'hosted').map((tool) => tool.name)),
  };
}

type CallIdentity = Pick<ToolCallBlock, 'id' | 'name' | 'namespace' | 'by'>;

/** The start of a call for the client. `hostedTool`: a hosted call of another protocol, encoded as one of Messages. */
export interface CallHead {
  readonly block: JsonObject;
  readonly hostedTool: EncodedHostedTool | undefined;
}

/** An encoded hosted call without a result so far. */
export interface AwaitedResult {
  /** The call's id on the wire. */
  readonly id: string;
  readonly tool: EncodedHostedTool;
}

/**
 * The start of a call, with empty input. Undefined for a hosted call of another protocol that the client did
 * not declare or that Messages has no block for.
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

/** The result block of an encoded hosted call; `result` is undefined if none came. */
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

/** Text in place of media that a model made: Messages answers have no block for them. */
export function mediaText(block: MediaBlock): string {
  return block.source.type === 'url' && !block.source.url.startsWith('data:')
    ? block.source.url
    : `[${block.media} omitted]`;
}

/** The JSON object of an unchanged block of this protocol, else undefined. */
export function ownBlock(block: Parameters<typeof ownWire>[0]): JsonObject | undefined {
  const wire = ownWire(block);
  return isObject(wire) ? wire : undefined;
}

/** A `msg_…` id, made from the upstream's id or the request id. */
export function messageId(id: string, requestId: string): string {
  if (id.startsWith('msg_')) return id;
  const stem = (id === '' ? requestId.replace(/^req_/, '') : id).replace(/[^a-zA-Z0-9_-]/g, '');
  return `msg_${stem}`;
}

/** Top-level fields of a message that come from the vendor. */
export const VENDOR_FIELDS = ['container', 'context_management', 'input_transformations'] as const;

/** The vendor's top-level fields that Messages knows. */
export function ownVendorFields(rest: JsonObject | undefined): JsonObject {
  return Object.fromEntries(
    VENDOR_FIELDS.filter((key) => rest?.[key] !== undefined).map((key) => [key, rest?.[key]]),
  );
}

const TIERS = new Set(['standard', 'priority', 'batch']);

/** Vendor fields inside `usage` that Messages knows: service tier and region. */
export function servedBy(rest: JsonObject | undefined): JsonObject {
  const tier = rest?.service_tier;
  const geo = rest?.inference_geo;
  return {
    ...(typeof tier === 'string' && TIERS.has(tier) ? { service_tier: tier } : {}),
    ...(typeof geo === 'string' ? { inference_geo: geo } : {}),
  };
}
