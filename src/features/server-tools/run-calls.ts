/** Runs the calls of one turn: in parallel, bounded, each with its own time, and never failing as a whole. */

import type { Conversation, ProtocolName } from '../../conversation/types.ts';
import { isObject, tryParse } from '../../lib/json/json.ts';
import type { ToolRun } from '../../samples/recording.ts';
import type { Offered } from './offer.ts';
import { failedOutcome, ToolError, type ToolLog, type ToolOutcome } from './tool.ts';

/** One call of a server tool as the model made it. */
export interface ServerCall {
  readonly id: string;
  readonly offered: Offered;
  /** Raw arguments. */
  readonly input: string;
}

/** A call that was run, or answered without being run. */
export interface Ran {
  readonly outcome: ToolOutcome;
  /** Milliseconds. */
  readonly ms: number;
}

/** A client's bound on calls of all the hosted tools that it declared (Responses: `max_tool_calls`). */
export interface DeclaredCalls {
  readonly most: number;
  made: number;
}

export interface RunOptions {
  /** Calls at the same time. */
  readonly parallel: number;
  /** How often each tool was called before; counted up here. */
  readonly uses: Map<Offered['tool'], number>;
  /** Calls of tools that the client declared: how many may be, and were; counted up here. */
  readonly declared: DeclaredCalls;
  readonly signal: AbortSignal;
  /** Milliseconds that are left for all of it. */
  readonly leftMs: number;
  readonly conversation?: Conversation;
  readonly client?: ProtocolName;
  readonly owner?: string;
  readonly log: ToolLog;
  /** The hop that asked for the calls; left out: none has been sent yet. */
  readonly hop?: number;
  readonly onRun?: (run: ToolRun) => void;
}

/** One promise per call, in order; none of them rejects. */
export function runCalls(
  calls: readonly ServerCall[],
  options: RunOptions,
): readonly Promise<Ran>[] {
  let running = 0;
  const waiting: (() => void)[] = [];
  const slot = async () => {
    if (running >= options.parallel) {
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
      });
    }
    running++;
  };
  const free = () => {
    running--;
    waiting.shift()?.();
  };
  return calls.map(async (call) => {
    const refused = refusal(call, options);
    if (refused !== undefined) return told(call, refused, performance.now(), options);
    await slot();
    const started = performance.now();
    try {
      return told(call, await runOne(call, options), started, options);
    } finally {
      free();
    }
  });
}

/** Counts the call, or says why it is not run. */
function refusal(
  { offered, input }: ServerCall,
  { uses, declared }: RunOptions,
): ToolOutcome | undefined {
  const { tool, maxUses } = offered;
  const before = uses.get(tool) ?? 0;
  if (before >= maxUses) {
    const message = `${tool.name} may be used ${maxUses} times, and has been. Answer with what you have.`;
    return failedOutcome(tool.name, message, { code: 'max_uses_exceeded' });
  }
  if (offered.declared !== undefined) {
    if (declared.made >= declared.most) {
      const message = `No more than ${declared.most} tool calls are allowed, and they have been made. Answer with what you have.`;
      return failedOutcome(tool.name, message, { code: 'max_uses_exceeded' });
    }
    declared.made++;
  }
  uses.set(tool, before + 1);
  if (argumentsOf(input) !== undefined) return undefined;
  const message = `The arguments are not a JSON object: ${why(input)} Call ${tool.name} again with a JSON object.`;
  return failedOutcome(tool.name, message, { code: 'invalid_tool_input', retryable: true });
}

/** What is wrong with them, in the parser's own words. */
function why(input: string): string {
  try {
    JSON.parse(input);
    return 'they are JSON of another kind.';
  } catch (thrown) {
    return `${thrown instanceof Error ? thrown.message.slice(0, 200) : 'they cannot be read'}.`;
  }
}

/** No arguments at all mean an empty object. */
function argumentsOf(input: string) {
  if (input.trim() === '') return {};
  const value = tryParse(input);
  return isObject(value) ? value : undefined;
}

async function runOne(call: ServerCall, options: RunOptions): Promise<ToolOutcome> {
  const { tool, options: declared } = call.offered;
  const late = new AbortController();
  const ms = Math.max(0, Math.min(tool.limits.timeoutMs, options.leftMs));
  const signal = AbortSignal.any([options.signal, late.signal]);
  let timer: ReturnType<typeof setTimeout> | undefined;
  // A tool that ignores its signal is not waited for.
  const cut = new Promise<never>((_, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    timer = setTimeout(() => {
      late.abort(new ToolError(`No answer within ${Math.round(ms)} ms.`, { retryable: true }));
    }, ms);
  });
  try {
    const running = (async () =>
      tool.run(argumentsOf(call.input) ?? {}, {
        signal,
        callId: call.id,
        options: declared,
        cites: call.offered.declared !== undefined,
        conversation: options.conversation,
        client: options.client,
        owner: options.owner,
        log: options.log,
      }))();
    return await Promise.race([running, cut]);
  } catch (thrown) {
    if (thrown instanceof ToolError) {
      const { message, retryable, code } = thrown;
      return failedOutcome(tool.name, message, { retryable, code });
    }
    if (options.signal.aborted) return failedOutcome(tool.name, 'The request was given up.');
    // An unforeseen error's own words may hold what nobody should read; its kind may be told.
    const kind = thrown instanceof Error ? thrown.name : typeof thrown;
    options.log('servertool.threw', { tool: tool.name, error: String(thrown) });
    return failedOutcome(tool.name, `The tool failed (${kind}).`, { retryable: true });
  } finally {
    clearTimeout(timer);
  }
}

function told(
  { offered, input }: ServerCall,
  outcome: ToolOutcome,
  started: number,
  { log, hop, onRun }: RunOptions,
): Ran {
  const { name } = offered.tool;
  const { ok, payload } = outcome;
  const ms = Math.round((performance.now() - started) * 10) / 10;
  log('servertool.run', { tool: name, ok, durationMs: Math.round(ms), ...outcome.log });
  const result = typeof payload === 'string' ? payload : JSON.stringify(payload);
  const error = isObject(payload) && typeof payload.message === 'string' ? payload.message : result;
  onRun?.({
    name,
    ...(hop === undefined ? {} : { hop }),
    arguments: input,
    ...(ok ? { result } : { error }),
    started,
    ms,
  });
  return { outcome, ms };
}
