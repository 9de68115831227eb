/** `…/curl`: the client's request as a curl command line, with a variable in the place of the key. */

import type { Config } from '../../../config/config.ts';
import { needsKey } from '../../../config/sections/auth.ts';
import { requestTarget } from '../../../samples/replay/send.ts';
import { fromSample } from '../../../samples/replay/source.ts';
import type { Recorded } from './said.ts';

const STAGE = 'client-request';

/** A body up to this size is part of the command line. */
const INLINE = 64 * 1024;

/** A POSIX shell takes everything between these quotes literally. */
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/**
 * @param origin of this gateway, as the browser knows it
 * @throws GatewayError not_found when there is no request
 */
export function curlLine({ store, meta }: Recorded, config: Config, origin: string): string {
  const { protocol, body, search, headers } = fromSample(store, meta, STAGE);
  const named = Array.from(headers, ([name, value]) => `-H ${quoted(`${name}: ${value}`)}`);
  const file = meta.edges.find(({ stage }) => stage === STAGE)!.file;
  const lines = [
    `curl -sS -N ${quoted(origin + requestTarget(protocol, body, search))}`,
    "-H 'content-type: application/json'",
    ...(needsKey(config.auth) ? ['-H "authorization: Bearer $HOPGATE_KEY"'] : []),
    ...named,
    `--data-binary ${dataOf(body) ?? `@${file}`}`,
  ];
  return `${lines.join(' \\\n  ')}\n`;
}

/** Undefined: it is too large, or no text. */
function dataOf(body: Uint8Array): string | undefined {
  const text = Buffer.from(body).toString('utf8');
  const isText = Buffer.from(text, 'utf8').equals(body) && !text.includes('\0');
  return body.length <= INLINE && isText ? quoted(text) : undefined;
}
