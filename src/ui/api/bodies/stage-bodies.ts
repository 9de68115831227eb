/** The recorded body of a stage: its bytes, its protocol, and the raw-body route. */

import { type Static, Type } from '@sinclair/typebox';
import { GatewayError, invalid } from '../../../conversation/errors.ts';
import { protocolOf } from '../../../conversation/models/endpoint-names.ts';
import type { ProtocolName } from '../../../conversation/types.ts';
import { stageBytes } from '../../../samples/replay/compare-stages.ts';
import type { SampleMeta, SampleStage, SampleStore } from '../../../samples/sample.ts';
import { plain } from '../answers.ts';
import { BODY_BYTES_HEADER } from '../api.ts';
import { offset, wholeNumber } from '../parameters.ts';

/** Most bytes of a body in one response. */
const SLICE = 4 * 2 ** 20;
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

export const RAW_QUERY = Type.Object({
  from: offset('from'),
  bytes: wholeNumber('bytes', { least: 1, most: SLICE, fallback: SLICE }),
});

/** `…/edges/:stage`: the raw body, or a part of it. */
export function rawBody(
  store: SampleStore,
  meta: SampleMeta,
  stage: string,
  { from, bytes: count }: Static<typeof RAW_QUERY>,
): Response {
  const stageInfo = requireStage(meta, stage);
  const bytes = stageBytes(store, meta, stageInfo.stage);
  return plain(bytes.subarray(from, from + count), {
    [BODY_BYTES_HEADER]: String(bytes.length),
    'content-disposition': `inline; filename="${stageInfo.file}.txt"`,
  });
}
