/** The body of an edge: its bytes, how it speaks, and what it answers. */

import { type Static, Type } from '@sinclair/typebox';
import { GatewayError } from '../../conversation/errors.ts';
import type { ProtocolName } from '../../conversation/types.ts';
import { stageBytes } from '../../samples/replay/compare-stages.ts';
import type { SampleMeta, SampleStage, SampleStore } from '../../samples/sample.ts';
import { plain } from './answers.ts';
import { BODY_BYTES_HEADER } from './api.ts';
import { offset, wholeNumber } from './parameters.ts';

/** Bytes of a body that are sent at a time. */
const SLICE = 4 * 2 ** 20;
/** Bytes of a body that is still taken apart, in one go; a larger one is shown as it is. */
const READABLE = 8 * 2 ** 20;

export interface ReadableBody {
  readonly stageInfo: SampleStage;
  readonly bytes: Uint8Array;
  readonly protocol: ProtocolName;
  readonly sse: boolean;
}

/** @throws GatewayError not_found when there is no such edge */
export function requireStage(meta: SampleMeta, stage: string): SampleStage {
  const stageInfo = meta.edges.find((one) => one.stage === stage);
  if (stageInfo !== undefined) return stageInfo;
  throw new GatewayError('not_found', `${meta.id} has no stage "${stage.slice(0, 100)}".`);
}

/** A body to be taken apart. @throws GatewayError not_found, too_large */
export function readableBody(store: SampleStore, meta: SampleMeta, stage: string): ReadableBody {
  const stageInfo = requireStage(meta, stage);
  if (stageInfo.bytes > READABLE) {
    throw new GatewayError(
      'too_large',
      `This body of ${stageInfo.bytes} bytes is shown only as it is: it is too large to be taken apart.`,
    );
  }
  const atClient = stage.startsWith('client-');
  const spoken = atClient
    ? meta.entry
    : (stageInfo.protocol ?? meta.provider_protocol ?? meta.entry);
  return {
    stageInfo,
    bytes: stageBytes(store, meta, stage),
    protocol: spoken,
    sse: stageInfo.file.endsWith('.sse'),
  };
}

export const RAW_QUERY = Type.Object({
  from: offset('from'),
  bytes: wholeNumber('bytes', { least: 1, most: SLICE, fallback: SLICE }),
});

/** `…/edges/:stage`: the body as it is, or a part of it. */
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
