/** Sends one request to a provider for `hopgate doctor`, and says what a failure means. */

import type { Secret } from '../../../config/secret.ts';
import type { ProviderConfig } from '../../../config/sections/providers.ts';
import { GatewayError } from '../../../conversation/errors.ts';
import { decoded } from '../../../gateway/response-body.ts';
import { type Json, tryParse } from '../../../lib/json/json.ts';
import { Abort } from '../../../lib/loop/abort.ts';
import { vendorHeaders, vendorUrl } from '../../../upstream/model-list.ts';
import { platformOf } from '../../../upstream/platform/index.ts';
import { networkTo } from '../../../upstream/pool.ts';
import type { UpstreamRequest } from '../../../upstream/transport.ts';
import { diagnoseNetworkError } from './diagnosis.ts';

export interface ProbeAnswer {
  readonly status: number;
  readonly text: string;
  readonly json: Json | undefined;
}

interface SendProbeOptions {
  /** As in {@link Environment}. */
  readonly proxied: (scheme: string) => boolean;
  readonly timeoutMs: number;
  /** The proxy that the environment names for this URL, if any. */
  readonly proxy?: string;
}

type ProbeResult =
  | { readonly answer: ProbeAnswer; readonly ms: number }
  | { readonly failure: { readonly message: string; readonly hint?: string } };

// The longest model lists have some hundred KB.
const LIST_BYTES = 16 * 1024 * 1024;

/** One request, the way that real requests go. Never rejects. @param body undefined: a `GET` */
export async function sendProbe(
  provider: ProviderConfig,
  path: string,
  body: Json | undefined,
  key: Secret | undefined,
  { proxied, timeoutMs, proxy }: SendProbeOptions,
): Promise<ProbeResult> {
  const url = vendorUrl(provider, path);
  const own = provider.transport.proxy;
  const started = performance.now();
  const abort = new Abort();
  abort.follow(AbortSignal.timeout(timeoutMs));
  try {
    // The same network path as that of real requests.
    const transport = networkTo(provider, proxied);
    const request: UpstreamRequest = {
      url: url.href,
      method: body === undefined ? 'GET' : 'POST',
      headers: vendorHeaders(provider, key),
      abort,
      ...(body !== undefined && { body: Buffer.from(JSON.stringify(body)) }),
    };
    const platform = platformOf(provider, transport);
    const urlOf = (own: string) => vendorUrl(provider, own).href;
    const { status, body: answer } = decoded(
      platform === undefined
        ? await transport(request)
        : await platform.send({ path, url: urlOf, request, stream: false }),
    );
    const text = new TextDecoder().decode(await answer.readAll(LIST_BYTES));
    const ms = Math.round(performance.now() - started);
    return { answer: { status, text, json: tryParse(text) }, ms };
  } catch (thrown) {
    if (thrown instanceof GatewayError) return { failure: { message: thrown.message } };
    return {
      failure: diagnoseNetworkError(
        thrown,
        url,
        Math.round(timeoutMs / 1000),
        own?.reveal() ?? proxy,
      ),
    };
  }
}
