/** The text that `serve` prints when it starts: the providers, requests to try, and the clients that `setup` knows. */

import type { Config } from '../config/config.ts';
import { needsKey } from '../config/sections/auth.ts';
import type { ProtocolName } from '../conversation/types.ts';
import { CLIENT_NAMES } from './commands/setup/client-names.ts';
import { describeSource } from './load-config.ts';
import { isServed, modelNames } from './served-models.ts';
import { wrap } from './terminal.ts';

const quoted = (value: unknown) => `'${JSON.stringify(value).replaceAll("'", `'\\''`)}'`;

function modelToTry(config: Config, protocol: ProtocolName): string {
  const names = modelNames(config);
  return names.find((name) => isServed(config, name, protocol)) ?? 'MODEL';
}

/** Characters that `encodeURIComponent` leaves and a shell does not. */
const UNSAFE_IN_SHELL = /[!'()*]/g;

/** A part of a path that needs no quotes in a shell. */
const pathPart = (value: string) =>
  encodeURIComponent(value).replace(
    UNSAFE_IN_SHELL,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );

/**
 * Lines for stderr. The curl lines can be pasted. If the gateway needs a key, they read it from $HOPGATE_KEY,
 * because a key must not appear in a log; the line before them sets it. `program`: the name to call the program by.
 */
export function banner(config: Config, url: string, program = 'hopgate'): string[] {
  const lines: string[] = [];
  lines.push(`Providers (${describeSource(config.source)}):`);
  const providers = Object.values(config.providers);
  const widest = Math.max(...providers.map(({ name }) => name.length));
  for (const { name, protocol, baseUrl, models, keys } of providers) {
    const count = keys.length === 1 ? '1 key' : `${keys.length} keys`;
    const where = baseUrl.startsWith('demo:') ? 'built in' : `${baseUrl}, ${count}`;
    const some = models.slice(0, 4).join(', ') + (models.length > 4 ? ', …' : '');
    lines.push(`  ${name.padEnd(widest)}  ${protocol}  ${where}${some && `  ${some}`}`);
  }
  const auth = needsKey(config.auth) ? ' -H "authorization: Bearer $HOPGATE_KEY"' : '';
  const curl = (path: string, body: unknown) =>
    `  curl ${url}${path}${auth} -H 'content-type: application/json' -d ${quoted(body)}`;
  const messages = [{ role: 'user', content: 'Say hello.' }];
  lines.push('');
  lines.push('Try it, one line for each protocol:');
  // Before the curl lines, so that all lines can be pasted in order.
  if (auth !== '') lines.push(`  [ -n "$HOPGATE_KEY" ] || export HOPGATE_KEY='one of auth.keys'`);
  lines.push(
    curl('/v1/chat/completions', { model: modelToTry(config, 'openai-chat'), messages }),
    curl('/v1/responses', { model: modelToTry(config, 'openai-responses'), input: 'Say hello.' }),
    curl('/v1/messages', {
      model: modelToTry(config, 'anthropic-messages'),
      max_tokens: 256,
      messages,
    }),
    curl(`/v1beta/models/${pathPart(modelToTry(config, 'google-gemini'))}:generateContent`, {
      contents: [{ role: 'user', parts: [{ text: 'Say hello.' }] }],
    }),
    '',
    `Look at what goes through: ${url}/ui`,
    `Point a client at it: ${program} setup NAME, with one of`,
    ...wrap(CLIENT_NAMES.join(', '), 80, 2),
  );
  return lines;
}
