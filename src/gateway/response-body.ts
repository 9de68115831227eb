/** An upstream's body as plain bytes, whatever encoding it came in although none was asked for. */

import { HeaderList } from '../lib/header-list.ts';
import { memberOf } from '../lib/json-members.ts';
import { streamSource } from '../upstream/fetch-transport.ts';
import type { ChunkSource, UpstreamAnswer } from '../upstream/transport.ts';

const FORMATS: Readonly<Record<string, string>> = {
  gzip: 'gzip',
  'x-gzip': 'gzip',
  deflate: 'deflate',
  br: 'brotli',
  zstd: 'zstd',
};

/** The answer with its content encoding undone; the very one that came where it has none. */
export function decoded(answer: UpstreamAnswer): UpstreamAnswer {
  const encoding = answer.headers.get('content-encoding')?.trim().toLowerCase();
  const format = encoding === undefined ? undefined : memberOf(FORMATS, encoding);
  if (format === undefined) return answer;
  const headers = new HeaderList();
  for (const [name, value] of answer.headers) {
    if (name !== 'content-encoding' && name !== 'content-length') headers.append(name, value);
  }
  const plain = streamSource(() =>
    streamOf(answer.body).pipeThrough(
      new DecompressionStream(format as 'gzip') as unknown as ReadableWritablePair<
        Uint8Array,
        Uint8Array
      >,
    ),
  );
  return { ...answer, headers, body: plain };
}

function streamOf(source: ChunkSource): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const chunks = await source.next();
      if (chunks === undefined) return controller.close();
      for (const chunk of chunks) controller.enqueue(chunk);
    },
    cancel: () => source.cancel(),
  });
}
