/** `…/curl`: a request as a curl command line, with a variable in the place of every key. */

import type { Config } from '../../../config/config.ts';
import { needsKey } from '../../../config/sections/auth.ts';
import { USUAL_AUTH } from '../../../config/sections/providers.ts';
import { invalid } from '../../../conversation/errors.ts';
import { isObject, tryParse } from '../../../lib/json/json.ts';
import { requestTarget } from '../../../samples/replay/send.ts';
import { fromSample, type ReplaySource, withModel } from '../../../samples/replay/source.ts';
import type { Recorded } from './said.ts';

/** A body up to this size is part of the command line. */
const INLINE = 64 * 1024;

/** A POSIX shell takes everything between these quotes literally. */
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/**
 * @param origin of this gateway, as the browser knows it
 * @throws GatewayError not_found when there is no such request
 */
export function curlLine(
  { store, meta }: Recorded,
  stage: string,
  config: Config,
  origin: string,
): string {
  if (!stage.endsWith('request')) throw invalid(`"${stage}" is not a request.`, 'stage');
  const source = fromSample(store, meta, stage);
  const stageInfo = meta.edges.find((one) => one.stage === stage);
  const provider = config.providers[source.target?.split('/')[0] ?? ''];
  // The built-in demo has no address. A platform takes another form, which nothing but this program signs.
  const toVendor =
    source.direct && provider?.platform === undefined && /^https?:/.test(stageInfo?.url ?? '');
  const headers: string[] = ["-H 'content-type: application/json'"];
  if (toVendor) {
    const auth = provider?.auth ?? USUAL_AUTH[source.protocol];
    if (auth === 'bearer') headers.push('-H "authorization: Bearer $PROVIDER_KEY"');
    else if (auth !== 'none') headers.push(`-H "${auth}: $PROVIDER_KEY"`);
  } else if (needsKey(config.auth)) {
    headers.push('-H "authorization: Bearer $HOPGATE_KEY"');
  }
  for (const [name, value] of source.headers) headers.push(`-H ${quoted(`${name}: ${value}`)}`);
  const target = requestTarget(source.protocol, source.body, source.search);
  const url = toVendor ? stageInfo!.url! : origin + target;
  const lines = [
    `curl -sS -N ${quotedUrl(url)}`,
    ...headers,
    dataOf(source, stageInfo!.file, toVendor),
  ];
  return `${lines.join(' \\\n  ')}\n`;
}

/** A masked key in a URL becomes a variable as well. */
function quotedUrl(url: string): string {
  return url
    .split(/\*{3,}/)
    .map(quoted)
    .join('"$PROVIDER_KEY"');
}

function dataOf(
  { body, direct, target, protocol }: ReplaySource,
  file: string,
  toVendor: boolean,
): string {
  // A vendor's request that is sent through this gateway names its target as the model.
  const asked = direct && !toVendor && target !== undefined ? withModel(body, target) : body;
  const bytes = toVendor && protocol === 'google-gemini' ? withoutAddress(asked) : asked;
  const text = Buffer.from(bytes).toString('utf8');
  const same = bytes.length <= INLINE && Buffer.from(text, 'utf8').equals(bytes);
  return same && !text.includes('\0') ? `--data-binary ${quoted(text)}` : `--data-binary @${file}`;
}

/** A Gemini body as the vendor takes it: model and stream are in the URL. */
function withoutAddress(body: Uint8Array): Uint8Array {
  const value = tryParse(Buffer.from(body).toString('utf8'));
  if (!isObject(value)) return body;
  const { model: _model, stream: _stream, ...rest } = value;
  return Buffer.from(JSON.stringify(rest));
}
