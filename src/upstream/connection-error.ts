/** Turns a network failure into an error that says whether the request may be tried elsewhere. */

import { GatewayError } from '../conversation/errors.ts';
import { NotConnected } from './http1/connection.ts';
import { OtherScheme } from './http1/other-scheme.ts';
import { MalformedReply } from './http1/response-parser.ts';
import { NoDescriptor, TargetError } from './target-error.ts';

// The server cannot be reached, and will not be a moment later.
const UNREACHED =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|ConnectionRefused|FailedToOpenSocket|DNS|CERT_|UNABLE_TO|DEPTH_|SELF_SIGNED|ERR_TLS|UnsupportedProxyProtocol|ERR_PROXY_TUNNEL)/;

// Of these, what no waiting mends: nothing listens there, the name, the certificate or the proxy is wrong.
const LASTING =
  /^(?:ECONNREFUSED|ENOTFOUND|ConnectionRefused|CERT_|UNABLE_TO|DEPTH_|SELF_SIGNED|ERR_TLS|UnsupportedProxyProtocol)/;

// It was reached, and hung up.
const CLOSED: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);

const SPEAKS = {
  http: 'plain HTTP on this port; use http://',
  https: 'TLS on this port; use https://',
};

/** A file of the provider's `tls` cannot be read, or holds nothing that can be used. */
export class UnusableTlsFile extends Error {
  override readonly name = 'UnusableTlsFile';
}

/** A failure before an answer, in words that name the provider but no URL (which may hold a key). */
export function connectionError(provider: string, thrown: unknown): GatewayError {
  const cause = { cause: thrown };
  if (thrown instanceof NotConnected) {
    const seconds = thrown.ms / 1000;
    const words = `Provider ${provider} could not be reached within ${seconds} s (timeouts.connect).`;
    return new TargetError('elsewhere', 'timeout', words, cause);
  }
  const speaks = otherProtocol(provider, thrown);
  if (speaks !== undefined) {
    const words = `Provider ${provider} ${speaks}.`;
    return new TargetError('elsewhere', 'upstream', words, { ...cause, retryable: false });
  }
  if (thrown instanceof UnusableTlsFile) {
    const words = `Provider ${provider} could not be reached: a file of providers.${provider}.tls cannot be used; hopgate check says why.`;
    return new TargetError('elsewhere', 'upstream', words, { ...cause, retryable: false });
  }
  if (thrown instanceof MalformedReply) {
    const words = `Provider ${provider} sent no proper HTTP answer: ${thrown.message}.`;
    return thrown.message.includes('limits.')
      ? new TargetError('next-target', 'upstream', words, { ...cause, retryable: false })
      : new GatewayError('upstream', words, cause);
  }
  const limit = exhausted();
  if (limit !== undefined) {
    const words = `Provider ${provider} could not be reached: no file can be opened any more (${limit}).`;
    // Connections that clients keep hold the descriptors that the next ones wait for.
    return new NoDescriptor('upstream', words, { ...cause, headers: { connection: 'close' } });
  }
  const code = (thrown as { code?: unknown } | null)?.code;
  const known = typeof code === 'string' ? code : undefined;
  const what =
    known !== undefined && CLOSED.has(known)
      ? 'closed the connection before it answered'
      : 'could not be reached';
  const proxy = proxyWords(known, thrown);
  const words = `Provider ${provider} ${what}${proxy} (${known ?? 'no connection'}).`;
  if (known === undefined || !UNREACHED.test(known))
    return new GatewayError('upstream', words, cause);
  // The client would only wait for what somebody has to start or set right.
  const waits = { ...cause, ...(LASTING.test(known) ? { retryable: false } : {}) };
  return new TargetError('elsewhere', 'upstream', words, waits);
}

/** What the vendor speaks in place of what it was asked in, and what to set. */
function otherProtocol(provider: string, thrown: unknown): string | undefined {
  if (thrown instanceof OtherScheme) return `speaks ${SPEAKS[thrown.speaks]} (base_url)`;
  const { code, message } = (thrown ?? {}) as { code?: unknown; message?: unknown };
  if (code === 'HTTP2Unsupported') {
    return `does not speak HTTP/2 at this address; set providers.${provider}.http2 to false`;
  }
  return typeof message === 'string' && message.includes('ALERT_NO_APPLICATION_PROTOCOL')
    ? `speaks HTTP/2 alone; set providers.${provider}.http2 to true`
    : undefined;
}

/** A proxy's refusal is not the vendor's: the message names the proxy. */
function proxyWords(code: string | undefined, thrown: unknown): string {
  if (code === 'UnsupportedProxyProtocol') return ': its proxy must speak HTTP, not SOCKS';
  const { status } = thrown as { status?: unknown };
  return code === 'ERR_PROXY_TUNNEL' ? `: its proxy answered with status ${status}` : '';
}

/** The limit on open files that has been reached: the system reports what fails then as another error. */
function exhausted(): string | undefined {
  const { closeSync, openSync } = process.getBuiltinModule('node:fs');
  try {
    closeSync(openSync('/dev/null', 'r'));
  } catch (thrown) {
    const { code } = thrown as { code?: unknown };
    if (code === 'EMFILE') return 'EMFILE: the limit of this process, see ulimit -n or LimitNOFILE';
    if (code === 'ENFILE') return 'ENFILE: the limit of this machine, see fs.file-max';
  }
  return undefined;
}
