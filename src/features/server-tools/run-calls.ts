/** Runs the calls of one turn in parallel, with a limit and a time limit for each; failures become results. */

import { isObject, tryParse } from '../../lib/json/json.ts';
import { limitParallel } from '../../lib/loop/limit-parallel.ts';
import { maskLiterals } from '../../lib/text/secret-literals.ts';
import type { ToolRun } from '../../samples/recording.ts';
import type { OfferedTool } from './offer.ts';
import {
  failedOutcome,
  OUTCOME_UNKNOWN,
  type ToolContext,
  ToolError,
  type ToolOutcome,
} from './tool.ts';

/** One call of a server tool as the model made it. */
export interface ServerCall {
  readonly id: string;
  readonly offered: OfferedTool;
  /** Raw arguments. */
  readonly input: string;
}

/** A call that was run, or was answered without being run. */
export interface FinishedCall {
  readonly outcome: ToolOutcome;
  /** Milliseconds. */
  readonly ms: number;
}

/** The client's limit on calls of all hosted tools that it declared (Responses: `max_tool_calls`). */
export interface CallLimit {
  readonly max: number;
  used: number;
}

export interface RunCallsOptions
  extends Omit<ToolContext, 'callId' | 'options' | 'wantsCitations'> {
  /** Calls at the same time. */
  readonly parallel: number;
  /** How often each tool has been called; increased here. */
  readonly uses: Map<OfferedTool['tool'], number>;
  /** The limit on calls of declared tools; its count is increased here. */
  readonly declaredCalls: CallLimit;
  /** Milliseconds left for all calls together. */
  readonly leftMs: number;
  /** The hop that made the calls; left out: before the first hop. */
  readonly hop?: number;
  readonly onRun?: (run: ToolRun) => void;
  /** What no result may show: see {@link withoutSecrets}. */
  readonly secrets?: readonly string[];
}

/** One promise per call, in order; none of them rejects. */
export function runCalls(
  calls: readonly ServerCall[],
  options: RunCallsOptions,
): readonly Promise<FinishedCall>[] {
  const limited = limitParallel(options.parallel);
  return calls.map(async (call) => {
    const refused = refusal(call, options);
    if (refused !== undefined) return report(call, refused, performance.now(), options);
    return limited(async () => {
      const started = performance.now();
      const outcome = withoutSecrets(await runOne(call, options), options.secrets ?? []);
      return report(call, outcome, started, options);
    });
  });
}

/** Counts the call; the outcome of a call that may not run. */
function refusal(
  { offered, input }: ServerCall,
  { uses, declaredCalls }: RunCallsOptions,
): ToolOutcome | undefined {
  const { tool, maxUses } = offered;
  const before = uses.get(tool) ?? 0;
  if (before >= maxUses) {
    const message = `${tool.name} may be used ${maxUses} times and has been. Answer with what you have.`;
    return failedOutcome(tool.name, message, { code: 'max_uses_exceeded' });
  }
  if (offered.declared !== undefined) {
    if (declaredCalls.used >= declaredCalls.max) {
      const message = `No more than ${declaredCalls.max} tool calls are allowed, and all have been made. Answer with what you have.`;
      return failedOutcome(tool.name, message, { code: 'max_uses_exceeded' });
    }
    declaredCalls.used++;
  }
  uses.set(tool, before + 1);
  if (argumentsOf(input) !== undefined) return undefined;
  const message = `The arguments are not a JSON object: ${parseProblem(input)} Call ${tool.name} again with a JSON object.`;
  return failedOutcome(tool.name, message, { code: 'invalid_tool_input', retryable: true });
}

/** Why the arguments cannot be used, as the JSON parser says it. */
function parseProblem(input: string): string {
  try {
    JSON.parse(input);
    return 'they are JSON of another type.';
  } catch (thrown) {
    return `${thrown instanceof Error ? thrown.message.slice(0, 200) : 'they cannot be read'}.`;
  }
}

/** The arguments as an object; empty input is an empty object. */
function argumentsOf(input: string) {
  if (input.trim() === '') return {};
  const value = tryParse(input);
  return isObject(value) ? value : undefined;
}

async function runOne(call: ServerCall, options: RunCallsOptions): Promise<ToolOutcome> {
  const { tool, options: declared } = call.offered;
  const late = new AbortController();
  const ms = Math.max(0, Math.min(tool.limits.timeoutMs, options.leftMs));
  const signal = AbortSignal.any([options.signal, late.signal]);
  let timer: ReturnType<typeof setTimeout> | undefined;
  // Does not wait for a tool that ignores its signal.
  const cut = new Promise<never>((_, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    timer = setTimeout(() => {
      const unknown = tool.changes === true;
      const message = `No answer within ${Math.round(ms)} ms.${unknown ? ` ${OUTCOME_UNKNOWN}` : ''}`;
      late.abort(new ToolError(message, { retryable: !unknown }));
    }, ms);
  });
  try {
    const running = (async () =>
      tool.run(argumentsOf(call.input) ?? {}, {
        signal,
        callId: call.id,
        options: declared,
        wantsCitations: call.offered.declared !== undefined,
        conversation: options.conversation,
        client: options.client,
        owner: options.owner,
        payer: options.payer,
        log: options.log,
      }))();
    return await Promise.race([running, cut]);
  } catch (thrown) {
    if (thrown instanceof ToolError) {
      const { message, retryable, code } = thrown;
      return failedOutcome(tool.name, message, { retryable, code });
    }
    if (options.signal.aborted) return failedOutcome(tool.name, 'The request was cancelled.');
    // The message of an unexpected error may hold secrets; the model gets only the error's type.
    const kind = thrown instanceof Error ? thrown.name : typeof thrown;
    options.log('servertool.threw', { tool: tool.name, error: String(thrown) });
    return failedOutcome(tool.name, `The tool failed (${kind}).`, {
      retryable: tool.changes !== true,
    });
  } finally {
    clearTimeout(timer);
  }
}

/**
 * A server behind a tool gets credentials of its own, and may repeat them in its answer. The model's vendor and the
 * client must not see them.
 */
function withoutSecrets(outcome: ToolOutcome, secrets: readonly string[]): ToolOutcome {
  if (secrets.length === 0) return outcome;
  const { text, payload } = outcome;
  const safe = (one: string) => maskLiterals(one, secrets);
  const plain = JSON.stringify(payload);
  const masked = safe(plain);
  return {
    ...outcome,
    text: typeof text === 'string' ? safe(text) : (first) => safe(text(first)),
    payload: masked === plain ? payload : (tryParse(masked) ?? masked),
  };
}

function report(
  { offered, input }: ServerCall,
  outcome: ToolOutcome,
  started: number,
  { log, hop, onRun }: RunCallsOptions,
): FinishedCall {
  const { name } = offered.tool;
  const { ok, payload } = outcome;
  const ms = Math.round((performance.now() - started) * 10) / 10;
  log('servertool.run', { tool: name, ok, durationMs: Math.round(ms), ...outcome.log });
  const result = typeof payload === 'string' ? payload : JSON.stringify(payload);
  const error = isObject(payload) && typeof payload.message === 'string' ? payload.message : result;
  onRun?.({ name, hop, arguments: input, ...(ok ? { result } : { error }), started, ms });
  return { outcome, ms };
}
