import type { AskedUsage } from '../codecs/codec.ts';
import { FrameEditor } from '../gateway/stream/edited-frames.ts';
import { ErrorMask } from '../gateway/stream/mask-errors.ts';
import type { Output } from '../gateway/stream/pipeline.ts';
import { BoundedFrame } from '../gateway/stream/quiet-bytes.ts';
import { withoutUsageOf } from '../gateway/tries/edit-answer.ts';
import type { Upstream } from '../upstream/upstream.ts';

export interface ChunkFilter {
  /** Undefined: nothing may go out yet. @throws GatewayError if it cannot be read */
  push(chunk: Uint8Array): Uint8Array | undefined;
  /** The buffered rest at the end of the stream. */
  end(): Uint8Array | undefined;
}

/** @param hides usage that this gateway asked for and the client did not */
export function eventFilters(
  { config }: Upstream,
  secrets: readonly string[],
  hides: AskedUsage | undefined,
): readonly ChunkFilter[] {
  const filters: ChunkFilter[] = secrets.length > 0 ? [new ErrorMask(secrets)] : [];
  if (hides === undefined) return filters;
  const { name: provider, answers: limits, timeouts } = config;
  const limit = new BoundedFrame({ provider, limits, contentMs: timeouts.contentMs });
  const filter = new FrameEditor(withoutUsageOf(hides), limit);
  filters.push({
    push(chunk) {
      const shown = filter.shown(chunk);
      if (filter.broken !== undefined) throw filter.broken;
      return bytesOf(shown);
    },
    end: () => bytesOf(filter.rest()),
  });
  return filters;
}

const bytesOf = (out: Output): Uint8Array | undefined => {
  if (out.length === 0) return undefined;
  return typeof out === 'string' ? Buffer.from(out) : out;
};
