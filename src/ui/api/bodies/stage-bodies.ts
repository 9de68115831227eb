/** The raw-body route: the bytes of a recorded stage, or a part of them. */

import { type Static, Type } from '@sinclair/typebox';
import { requireStage, stageBytes } from '../../../samples/decode/readable-body.ts';
import type { SampleMeta, SampleStore } from '../../../samples/sample.ts';
import { plain } from '../answers.ts';
import { BODY_BYTES_HEADER } from '../api.ts';
import { offset, wholeNumber } from '../parameters.ts';

/** Most bytes of a body in one response. */
const SLICE = 4 * 2 ** 20;

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
