/** The `web_fetch` of `server_tools`: reading web pages for a model. */

import { type Static, Type } from '@sinclair/typebox';
import { byDefault, choice, closed, count, ms, optional, text } from '../../file/schema-types.ts';
import { toolTimeout } from './tool-schema.ts';

export const webFetch = closed(
  {
    inject: byDefault(
      choice(
        ['force', 'selective', 'declared'],
        'When the tool is offered: always, if the user wrote a URL, or if the client declared it.',
      ),
      'declared',
    ),
    timeout: byDefault(toolTimeout('Seconds for one page, redirects included.'), 20),
    max_bytes: byDefault(count('Bytes read of one page.', 1024), 5_000_000),
    max_text: byDefault(count('Characters handed to the model at a time.', 100), 40_000),
    max_redirects: byDefault(count('Redirects followed.'), 5),
    max_uses: optional(count('Pages for one request.', 1), 'limited by the tool rounds only'),
    allow: byDefault(
      Type.Array(text('A host, *.domain, address or block; with :port or without.'), {
        description: 'Addresses that may be fetched although they are not on the public internet.',
      }),
      [],
    ),
  },
  'Reading web pages for models that cannot do it themselves.',
);

export interface WebFetchConfig {
  /** force: always offered; selective: when the user wrote a URL; declared: when the client declared it. */
  readonly inject: 'force' | 'selective' | 'declared';
  /** For one page, redirects included. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
  /** Characters handed to the model at a time. */
  readonly maxText: number;
  readonly maxRedirects: number;
  /** Pages for one request. */
  readonly maxUses?: number;
  /** Hosts and address blocks that may be fetched although they are not public. */
  readonly allow: readonly string[];
}

export function resolveWebFetch(own: Static<typeof webFetch>): WebFetchConfig {
  return {
    inject: own.inject,
    timeoutMs: ms(own.timeout),
    maxBytes: own.max_bytes,
    maxText: own.max_text,
    maxRedirects: own.max_redirects,
    ...(own.max_uses === undefined ? {} : { maxUses: own.max_uses }),
    allow: own.allow,
  };
}
