/** The recorded body of a stage with its protocol, as far as it can be decoded. */

import { GatewayError, invalid } from '../../conversation/errors.ts';
import { protocolOf } from '../../conversation/models/endpoint-names.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import type { SampleMeta, SampleStage, SampleStore } from '../sample.ts';

/** Largest body that is decoded; larger ones can only be shown raw. */
const READABLE = 8 * 2 ** 20;

export interface ReadableBody {
  readonly stageInfo: SampleStage;
  readonly bytes: Uint8Array;
  readonly protocol: ProtocolName;
  readonly sse: boolean;
}

/** @throws GatewayError not_found for an unknown stage */
export function requireStage(meta: SampleMeta, stage: string): SampleStage {
  const stageInfo = meta.edges.find((one) => one.stage === stage);
  if (stageInfo !== undefined) return stageInfo;
  throw new GatewayError('not_found', `${meta.id} has no stage "${stage.slice(0, 100)}".`);
}

/** A body to decode. @throws GatewayError not_found, too_large */
export function readableBody(store: SampleStore, meta: SampleMeta, stage: string): ReadableBody {
  const stageInfo = requireStage(meta, stage);
  if (stageInfo.bytes > READABLE) {
    throw new GatewayError(
      'too_large',
      `This body of ${stageInfo.bytes} bytes is too large to decode: it can only be shown raw.`,
    );
  }
  const atClient = stage.startsWith('client-');
  const entry = protocolOf(meta.entry);
  const protocol = atClient ? entry : (stageInfo.protocol ?? meta.provider_protocol ?? entry);
  if (protocol === undefined) {
    throw invalid(`A body of the endpoint ${meta.entry} can only be shown raw.`);
  }
  return {
    stageInfo,
    bytes: stageBytes(store, meta, stage),
    protocol,
    sse: stageInfo.file.endsWith('.sse'),
  };
}

/** The body of a stage. @throws GatewayError not_found */
export function stageBytes(store: SampleStore, meta: SampleMeta, stage: string): Uint8Array {
  const bytes = store.read(meta, stage);
  if (bytes === undefined) {
    const names = meta.edges.map((stageInfo) => stageInfo.stage).join(', ');
    throw new GatewayError('not_found', `${meta.id} has no stage "${stage}". It has: ${names}.`);
  }
  return bytes;
}
