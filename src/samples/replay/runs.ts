/** The results of a replay: failure rates, and whether they differ by more than chance. */

import { fisherExact, type Trials, wilson } from '../../lib/text/fisher-exact-test.ts';
import type { RequestOutcome } from './outcome.ts';
import type { SendResult } from './send.ts';

/** The outcome of the request when it was recorded. */
export interface RecordedOutcome extends RequestOutcome {
  readonly answer: string | undefined;
  /** Milliseconds until the end of the answer; undefined when unknown. */
  readonly total: number | undefined;
  /** Milliseconds until its first byte. */
  readonly firstByte: number | undefined;
  /** USD; null when the tokens or the price are unknown. */
  readonly cost: number | null;
}

export interface ReplayedRequest {
  readonly source: string;
  /** '' when no settings are compared. */
  readonly setting: string;
  readonly number: number;
  readonly sent: SendResult;
  /** What was recorded. */
  readonly before: RecordedOutcome | undefined;
  /** USD; null when the tokens or the price are unknown. */
  readonly cost: number | null;
}

export interface SettingResult extends Trials {
  readonly setting: string;
  readonly rate: number;
  /** 95 % interval of the rate. */
  readonly interval: readonly [low: number, high: number];
  /** Means over the answers that report them. */
  readonly promptTokens: number | undefined;
  readonly outputTokens: number | undefined;
  readonly ms: number;
}

export interface Comparison {
  readonly settings: readonly SettingResult[];
  /** Fisher's exact test on the first two settings; undefined for a single setting. */
  readonly p: number | undefined;
}

/** Below this a difference counts as more than chance. */
export const SIGNIFICANT = 0.05;

/** The runs by setting, in the order of `names`, and whether the first two settings differ by more than chance. */
export function compareRuns(
  names: readonly string[],
  runs: readonly ReplayedRequest[],
): Comparison {
  const settings = names.map((setting) =>
    resultOf(
      setting,
      runs.filter((run) => run.setting === setting),
    ),
  );
  const [a, b] = settings;
  return { settings, p: a === undefined || b === undefined ? undefined : fisherExact(a, b) };
}

function resultOf(setting: string, runs: readonly ReplayedRequest[]): SettingResult {
  const failed = runs.filter(({ sent }) => sent.failure !== undefined).length;
  const trials = { failed, passed: runs.length - failed };
  return {
    setting,
    ...trials,
    rate: runs.length === 0 ? 0 : failed / runs.length,
    interval: wilson(trials),
    promptTokens: mean(runs.map(({ sent }) => sent.promptTokens)),
    outputTokens: mean(runs.map(({ sent }) => sent.outputTokens)),
    ms: mean(runs.map(({ sent }) => sent.total)) ?? 0,
  };
}

function mean(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0
    ? undefined
    : known.reduce((sum, value) => sum + value, 0) / known.length;
}

/** A run as JSON, for `--json` and the page. */
export function runAsJson({ source, setting, number, sent, before, cost }: ReplayedRequest) {
  return {
    sample: source,
    ...(setting !== '' && { setting }),
    run: number,
    status: sent.status,
    error: sent.failure ?? null,
    prompt_tokens: sent.promptTokens ?? null,
    output_tokens: sent.outputTokens ?? null,
    first_byte_ms: sent.firstByte === undefined ? null : Math.round(sent.firstByte),
    ms: Math.round(sent.total),
    cost,
    answer: sent.answer ?? null,
    target: sent.target,
    notes: sent.notes,
    request_id: sent.id,
    ...(before !== undefined && {
      recorded: {
        status: before.status,
        error: before.failure ?? null,
        prompt_tokens: before.promptTokens ?? null,
        output_tokens: before.outputTokens ?? null,
        first_byte_ms: before.firstByte === undefined ? null : Math.round(before.firstByte),
        ms: before.total === undefined ? null : Math.round(before.total),
        cost: before.cost,
        answer: before.answer ?? null,
      },
    }),
  };
}

/** As `hopgate replay --json` prints it: costs in USD, times in milliseconds, shares from 0 to 1. */
export function runsAsJson(runs: readonly ReplayedRequest[], { settings, p }: Comparison) {
  return {
    runs: runs.map(runAsJson),
    settings: settings.map((one) => ({
      setting: one.setting,
      runs: one.failed + one.passed,
      failed: one.failed,
      failure_rate: one.rate,
      interval: one.interval,
      prompt_tokens: one.promptTokens ?? null,
      output_tokens: one.outputTokens ?? null,
      ms: Math.round(one.ms),
    })),
    ...(p !== undefined && { p, more_than_chance: p < SIGNIFICANT }),
  };
}
