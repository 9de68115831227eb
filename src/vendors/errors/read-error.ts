/** Reads a vendor's error, in whatever form it comes, and says what kind it is. */

import type { ErrorKind } from '../../conversation/errors.ts';
import { isObject, type Json, type JsonObject, tryParse } from '../../lib/json/json.ts';
import { memberOf } from '../../lib/json/json-members.ts';
import { listOf, object, objects } from '../../lib/json/typed-reads.ts';
import { BASE_RESP_CODES, CODES, type ErrorTexts, kindOfWords } from './kind-of-words.ts';

/** What an error says, read from wherever the vendor puts it. */
export interface VendorErrorTexts extends ErrorTexts {
  readonly param?: string | undefined;
  /** The code stood in `base_resp`: its numbers mean something else than those of other vendors. */
  readonly inBaseResp: boolean;
  /** OpenRouter's moderation names what it flagged. */
  readonly flagged: boolean;
  /** Google's details. */
  readonly details: readonly JsonObject[];
}

/** A kind of error, and whether a retry can help if the kind alone does not decide that. */
export interface KnownError {
  readonly kind: ErrorKind;
  readonly retryable?: boolean;
}

const NOTHING: JsonObject = {};
const text = (value: Json | undefined) =>
  typeof value === 'string' && value !== '' ? value : undefined;
const codeText = (value: Json | undefined) =>
  typeof value === 'number' ? String(value) : text(value);

// Errors inside errors: OpenRouter's raw text, relays of relays.
const MAX_WRAPPERS = 3;

/**
 * OpenAI `{error:{message,type,param,code}}` (code a number at OpenRouter, a string number at Azure
 * and Zhipu), xAI `{code,error:"…"}`, Ollama `{error:"…"}`, Mistral and FastAPI `{detail}`,
 * `{object:"error",message}` and `{message:{detail}}`, DeepInfra `{detail:{error}}`, watsonx and Cloudflare `{errors:[{code,message}]}`, DashScope `{code,message}`, Qianfan `{error_code,error_msg}`, MiniMax `{base_resp}`, Messages
 * `{type:"error",error}`, Gemini `[{error}]`, AWS `{__type,message}`, Problem Details `{title,detail}`; and what
 * OpenRouter and relays wrap, which is the error of the vendor behind them.
 */
export function readVendorError(value: Json | undefined, depth = 0): VendorErrorTexts {
  const top = object(value) ?? object(listOf(value)[0]) ?? NOTHING;
  const error = object(top.error) ?? NOTHING;
  const base = object(top.base_resp);
  const detail = object(top.detail);
  const failed = object(detail?.error) ?? detail ?? object(listOf(top.errors)[0]) ?? NOTHING;
  const metadata = object(error.metadata) ?? NOTHING;
  const outer: VendorErrorTexts = {
    message:
      wordsOf(error.message) ??
      text(top.error) ??
      wordsOf(top.message) ??
      text(top.Message) ??
      text(top.detail) ??
      validationMessage(top.detail) ??
      text(failed.message) ??
      text(failed.error) ??
      text(base?.status_msg) ??
      text(top.msg) ??
      text(top.error_msg) ??
      text(top.title),
    code:
      codeText(error.code) ??
      codeText(top.code) ??
      codeText(base?.status_code) ??
      codeText(top.error_code) ??
      codeText(failed.code),
    type:
      text(error.type) ??
      text(error.status) ??
      (top.type === 'error' ? undefined : text(top.type)) ??
      text(top.__type) ??
      text(failed.type) ??
      // Novita
      text(top.reason) ??
      // Ollama, Hugging Face and TGI: the text is the error, its type stands beside it.
      text(top.error_type),
    param: text(error.param) ?? text(top.param),
    inBaseResp: base !== undefined,
    flagged: listOf(metadata.reasons).length > 0 || metadata.flagged_input !== undefined,
    details: objects(error.details),
  };
  const wrapped =
    depth < MAX_WRAPPERS
      ? wrappedError(metadata.raw ?? error.upstream_error, outer.message)
      : undefined;
  if (wrapped === undefined) return outer;
  if (typeof wrapped === 'string') return { ...outer, message: wrapped };
  const inner = readVendorError(wrapped, depth + 1);
  if (inner.message === undefined) return outer;
  return {
    ...inner,
    code: inner.code ?? outer.code,
    type: inner.type ?? outer.type,
    param: inner.param ?? outer.param,
    flagged: inner.flagged || outer.flagged,
  };
}

/** What stands for the error of the vendor behind: its text, or the value that it sent. */
function wrappedError(raw: Json | undefined, message: string | undefined): Json | undefined {
  if (isObject(raw)) return raw;
  const plain = text(raw);
  if (plain !== undefined) {
    const parsed = tryParse(plain);
    return typeof parsed === 'object' && parsed !== null ? parsed : shortText(plain);
  }
  // A relay's message is the whole answer of its vendor.
  if (message === undefined || !/^\s{0,9}[{[]/.test(message)) return undefined;
  const parsed = tryParse(message);
  return typeof parsed === 'object' && parsed !== null ? parsed : undefined;
}

/** A page of HTML, or JSON that was cut, is no message. */
const shortText = (plain: string): string | undefined =>
  plain.length <= 2000 && !/^\s{0,9}[<]/.test(plain) ? plain.trim() : undefined;

/** A message; in one that is no text, Mistral has FastAPI's `detail`, or its list. */
const wordsOf = (message: Json | undefined): string | undefined => {
  const { detail = message, message: inner } = object(message) ?? NOTHING;
  return text(message) ?? text(inner) ?? text(detail) ?? validationMessage(detail);
};

/** FastAPI's (Mistral's, vLLM's) list of what did not validate. */
function validationMessage(value: Json | undefined): string | undefined {
  const lines = listOf(value).flatMap((item) => {
    const entry = object(item);
    const words = text(entry?.msg);
    if (words === undefined) return [];
    const where = listOf(entry?.loc).join('.');
    return [where === '' ? words : `${where}: ${words}`];
  });
  return lines.length > 0 ? lines.join('; ') : undefined;
}

/** Kinds that are about the request alone: no code of a vendor says more. */
const OF_THE_REQUEST: ReadonlySet<ErrorKind> = new Set([
  'context_overflow',
  'content_filter',
  'too_large',
]);

/**
 * The kind by the vendor's own words and codes; undefined where they say nothing, and the status decides. A code
 * that says no more than "invalid" decides nothing that the words say better.
 * @param status 0 inside a stream
 */
export function kindOfVendorError(
  status: number,
  error: VendorErrorTexts,
  body = '',
): KnownError | undefined {
  if (error.flagged) return { kind: 'content_filter' };
  const { code = '', message } = error;
  const words = kindOfWords(status, message === undefined ? { ...error, message: body } : error);
  if (words !== undefined && OF_THE_REQUEST.has(words.kind)) return words;
  const coded = memberOf(error.inBaseResp ? BASE_RESP_CODES : CODES, code);
  // 422 is about the content of a request: Mistral's 1000 is not Zhipu's.
  const isOthers = status === 422 && coded?.kind === 'authentication';
  if (
    coded !== undefined &&
    !isOthers &&
    (coded.kind !== 'invalid_request' || words === undefined)
  ) {
    return coded;
  }
  if (words?.kind === 'quota' || status === 429) return googleQuota(error) ?? words;
  return words;
}

/**
 * Google calls every limit a quota: one of a minute passes, one of a day does not.
 * @see https://ai.google.dev/gemini-api/docs/rate-limits
 */
export function googleQuota({ details, message = '' }: VendorErrorTexts): KnownError | undefined {
  const ids = details.flatMap(({ violations }) =>
    listOf(violations).map((one) => text(object(one)?.quotaId) ?? ''),
  );
  if (ids.some((id) => id.includes('PerDay'))) return { kind: 'quota', retryable: false };
  // The tier has nothing of this model: waiting is in vain.
  if (/\blimit: 0\b/.test(message)) return { kind: 'quota', retryable: false };
  if (ids.some((id) => /Per(?:Minute|Second|Hour)/.test(id))) return { kind: 'rate_limit' };
  return /exceeded your current quota/i.test(message) &&
    retryDelayOf(details, message) !== undefined
    ? { kind: 'rate_limit' }
    : undefined;
}

/** The seconds that Google asks for: RetryInfo `{retryDelay: "34.4s"}`, or "Please retry in 48.9s." */
export function retryDelayOf(details: readonly JsonObject[], message = ''): number | undefined {
  for (const { retryDelay } of details) {
    const seconds = Number.parseFloat(text(retryDelay) ?? '');
    if (seconds >= 0) return seconds;
  }
  const found = /retry in ([\d.]{1,20})s/i.exec(message)?.[1];
  const seconds = Number(found ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds : undefined;
}
