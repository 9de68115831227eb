/** Azure without API keys: the vendor's own requests, with tokens of Entra ID. */

import type { AzureConfig } from '../../../config/sections/platform/azure.ts';
import type { ProviderConfig } from '../../../config/sections/providers.ts';
import { withMore } from '../../request-headers.ts';
import type { Transport, UpstreamAnswer } from '../../transport.ts';
import { sendWithToken } from '../bearer.ts';
import type { Platform, PlatformRequest } from '../platform.ts';
import { noted, Renewed } from '../renewed.ts';
import { type EntraToken, fetchEntraToken } from './token.ts';

export class Azure implements Platform {
  readonly #tokens: Renewed<EntraToken>;

  constructor(
    config: ProviderConfig,
    { scope, identity }: AzureConfig,
    private readonly transport: Transport,
  ) {
    this.#tokens = new Renewed(
      noted(
        config.name,
        () => fetchEntraToken({ provider: config.name, scope, identity, transport }),
        ({ token }) => [token],
      ),
    );
  }

  async authorize(): Promise<string> {
    return `token of ${(await this.#tokens.get()).account}`;
  }

  send({ request, onSend }: PlatformRequest): Promise<UpstreamAnswer> {
    return sendWithToken(this.#tokens, request, (headers) => {
      onSend?.(request.url, withMore(headers, request.ownHeaders));
      return this.transport({ ...request, headers });
    });
  }
}
