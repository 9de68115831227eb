/** `…/curl`: a request as a command line, with a name in the place of every key. */

import type { Config } from '../../config/config.ts';
import { invalid } from '../../conversation/errors.ts';
import { PATHS } from '../../samples/replay/send.ts';
import { fromSample, type Source, withModel } from '../../samples/replay/source.ts';
import type { SampleMeta, SampleStore } from '../../samples/sample.ts';

/** A body up to this size stands in the line itself. */
const INLINE = 64 * 1024;

/** Everything between the quotes is taken as it stands by every POSIX shell. */
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/**
 * @param origin of this gateway, as the browser knows it
 * @throws GatewayError not_found when there is no such request
 */
export function curlLine(
  book: SampleStore,
  meta: SampleMeta,
  stage: string,
  config: Config,
  origin: string,
): string {
  if (!stage.endsWith('request')) throw invalid(`"${stage}" is no request.`, 'stage');
  const source = fromSample(book, meta, stage);
  const edge = meta.edges.find((one) => one.stage === stage);
  const provider = config.providers[source.target?.split('/')[0] ?? ''];
  // The built-in demo has no address of its own.
  const direct = source.straight && /^https?:/.test(edge?.url ?? '');
  const headers: string[] = ["-H 'content-type: application/json'"];
  if (direct) {
    const auth =
      provider?.auth ?? (source.protocol === 'anthropic-messages' ? 'x-api-key' : 'bearer');
    if (auth === 'bearer') headers.push('-H "authorization: Bearer $PROVIDER_KEY"');
    else if (auth !== 'none') headers.push(`-H "${auth}: $PROVIDER_KEY"`);
  } else if (config.auth.keys.length > 0) {
    headers.push('-H "authorization: Bearer $HOPGATE_KEY"');
  }
  for (const [name, value] of source.headers) headers.push(`-H ${quoted(`${name}: ${value}`)}`);
  const url = direct ? edge!.url! : origin + PATHS[source.protocol] + source.search;
  const lines = [`curl -sS -N ${quotedUrl(url)}`, ...headers, dataOf(source, edge!.file, direct)];
  return `${lines.join(' \\\n  ')}\n`;
}

/** A masked key in a URL becomes a name as well. */
function quotedUrl(url: string): string {
  return url
    .split(/\*{3,}/)
    .map(quoted)
    .join('"$PROVIDER_KEY"');
}

function dataOf({ body, straight, target }: Source, file: string, direct: boolean): string {
  // To a provider by way of this gateway: the target is the model's name.
  const bytes = straight && !direct && target !== undefined ? withModel(body, target) : body;
  const text = Buffer.from(bytes).toString('utf8');
  const same = bytes.length <= INLINE && Buffer.from(text, 'utf8').equals(bytes);
  return same && !text.includes('\0') ? `--data-binary ${quoted(text)}` : `--data-binary @${file}`;
}
