/** Causes of network failures and refusals of vendors, and advice about them. */

import { tryParse } from '../../../lib/json/json.ts';
import { redactText } from '../../../lib/text/redact.ts';
import { saysModelIsGone } from '../../../vendors/errors/kind-of-words.ts';
import { readVendorError } from '../../../vendors/errors/read-error.ts';

export interface Finding {
  /** `config`, `home`, `port`, `files`, `models`, `engine NAME`, `state`, `mcp NAME`, `tool NAME` or `provider NAME`. */
  readonly about: string;
  readonly status: 'ok' | 'warn' | 'fail' | 'skip';
  /** For people; secrets are masked. */
  readonly message: string;
  readonly hint?: string;
}

export const finding = (
  about: string,
  status: Finding['status'],
  message: string,
  hint?: string,
): Finding => (hint === undefined ? { about, status, message } : { about, status, message, hint });

export interface Diagnosis {
  readonly message: string;
  readonly hint?: string;
}

/** A TLS server answers a plain http request with bytes or a text of its own. */
export const plainHttpToTls = (host: string): Diagnosis => ({
  message: `${host} does not speak plain http`,
  hint: 'base_url says http://, and a server that wants TLS answers like this. Try https://.',
});

const NETWORK: readonly (readonly [error: RegExp, message: string, hint: string])[] = [
  [
    /ENOTFOUND|EAI_AGAIN|getaddrinfo|DNS/i,
    'the name {host} cannot be resolved',
    'Check the network and DNS of this machine, and base_url if the provider has one in the file.',
  ],
  [
    /ECONNREFUSED|ConnectionRefused|Unable to connect/i,
    '{host} refused the connection',
    'Nothing listens on that port: is the server running, and is the port in base_url right?',
  ],
  [
    /CERT|SELF_SIGNED|UNABLE_TO_(VERIFY|GET)|ALTNAME|certificate/i,
    'the TLS certificate of {host} is not trusted',
    'A company proxy or an old root store is the usual cause: give its certificate as tls.ca_file of the provider, or set NODE_EXTRA_CA_CERTS.',
  ],
  [
    /EPROTO|TLS handshake|WRONG_VERSION|ERR_SSL/i,
    'the TLS handshake with {host} failed',
    'Does base_url say https:// to a server that speaks plain http? Or is a proxy in between?',
  ],
  [
    /proxy|407/i,
    'the proxy did not let us through to {host}',
    'Check HTTPS_PROXY, or proxy of the provider.',
  ],
  [
    /ECONNRESET|ConnectionClosed|socket|EPIPE/i,
    '{host} closed the connection without an answer',
    'A firewall or proxy that dislikes the request does this; try from another network.',
  ],
  [
    /ENETUNREACH|EHOSTUNREACH/i,
    'there is no way through the network to {host}',
    'Check the network, VPN and firewall of this machine.',
  ],
];

const PLAIN_HINT = 'base_url says http://: a server that wants https:// hangs up like this.';

/** What a thrown network error means. `proxy`: the one that was used, if any. */
export function diagnoseNetworkError(
  thrown: unknown,
  url: URL,
  seconds: number,
  proxy: string | undefined,
): Diagnosis {
  const error = thrown as { name?: string; code?: string; message?: string };
  const via = proxy === undefined ? '' : ` (through the proxy ${redactText(proxy).text})`;
  if (error.name === 'TimeoutError' || error.name === 'AbortError' || error.code === 'ETIMEDOUT') {
    return {
      message: `${url.host} did not answer within ${seconds} s${via}`,
      hint: 'A firewall that drops packets, a proxy that is needed and not set, or a very slow server (try --timeout 60).',
    };
  }
  const text = `${error.code ?? ''} ${error.message ?? String(thrown)}`;
  const plain = url.protocol === 'http:' && proxy === undefined;
  if (plain && /no HTTP\/1 status line|the port speaks https/.test(text))
    return plainHttpToTls(url.host);
  const known = NETWORK.find(([error]) => error.test(text));
  if (known !== undefined) {
    const [, message, hint] = known;
    const cutOff = plain && message.includes('closed the connection');
    return {
      message: message.replace('{host}', () => url.host) + via,
      hint: cutOff ? `${PLAIN_HINT} ${hint}` : hint,
    };
  }
  return { message: `no connection to ${url.host}: ${redactText(text.trim()).text}${via}` };
}

/** The message in an error body, cut to 200 characters and without secrets; '' when there is none. */
export function vendorMessage(body: string): string {
  let text = body;
  try {
    const json = JSON.parse(body) as Record<string, unknown>;
    const error = (json.error ?? json) as Record<string, unknown> | string;
    const message = typeof error === 'string' ? error : (error.message ?? error.detail);
    text = typeof message === 'string' ? message : body;
  } catch {
    text = body.replace(/<[^>]*>/g, ' ');
  }
  const flat = redactText(text).text.replace(/\s+/g, ' ').trim();
  return flat.length > 200 ? `${flat.slice(0, 200)}…` : flat;
}

const REFUSALS: Readonly<Record<number, readonly [message: string, hint: string]>> = {
  401: [
    '{key} was rejected',
    'The key is wrong, expired, or belongs to another vendor, region or plan than base_url.',
  ],
  402: ['the account has no credit', "Top it up at the vendor's console."],
  403: [
    '{key} may not do this',
    'The key lacks a permission, the model is not open to this account, or the vendor blocks this region.',
  ],
  407: ['the proxy wants a login', 'Put user:password@ into the proxy URL.'],
  429: [
    'too many requests or no quota left',
    'The key works. Wait, or look at the quota in the console of the vendor.',
  ],
};
const WITHOUT_KEY = 'This server wants a key: put one under keys of the provider.';
const FAILED = ['the vendor failed', "Look at the vendor's status page and try again."] as const;

export function diagnoseRefusal(
  status: number,
  body: string,
  keyLabel: string | undefined,
): Diagnosis {
  const details = status === 407 ? '' : vendorMessage(body);
  const quote = details === '' ? '' : `: "${details}"`;
  const known = REFUSALS[status] ?? (status >= 500 ? FAILED : undefined);
  if (known === undefined) return { message: `refused with ${status}${quote}` };
  const message = known[0].replace('{key}', () => keyLabel ?? 'the request without a key');
  const hint = status === 401 && keyLabel === undefined ? WITHOUT_KEY : known[1];
  return { message: `${message} (${status})${quote}`, hint };
}

/** The vendor refuses a probe because of its model. */
export function saysNoModel(status: number, text: string): boolean {
  const isUsual = status === 404 || status === 400;
  if (isUsual && /model/i.test(vendorMessage(text))) return true;
  return saysModelIsGone(readVendorError(tryParse(text)));
}
