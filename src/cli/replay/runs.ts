/** The results of a replay: a table, failure rates, and whether their difference is more than chance. */

import { fisherExact, type Trials, wilson } from '../../lib/fisher.ts';
import { millis, percent } from '../samples/units.ts';
import { type Terminal, table } from '../terminal.ts';
import type { Outcome } from './outcome.ts';
import type { Sent } from './send.ts';

export interface Run {
  readonly source: string;
  /** '' when no settings are compared. */
  readonly setting: string;
  readonly number: number;
  readonly sent: Sent;
  /** What was recorded. */
  readonly before: Outcome | undefined;
}

export interface SettingResult extends Trials {
  readonly setting: string;
  readonly rate: number;
  /** 95 % interval of the rate. */
  readonly interval: readonly [low: number, high: number];
  /** Means over answers that had them. */
  readonly promptTokens: number | undefined;
  readonly outputTokens: number | undefined;
  readonly ms: number;
}

export interface Comparison {
  readonly settings: readonly SettingResult[];
  /** Of the first two settings; undefined when there is nothing to compare. */
  readonly p: number | undefined;
}

/** Below this a difference counts as more than chance. */
const SIGNIFICANT = 0.05;

export function compareRuns(names: readonly string[], runs: readonly Run[]): Comparison {
  const settings = names.map((setting) =>
    resultOf(
      setting,
      runs.filter((run) => run.setting === setting),
    ),
  );
  const [a, b] = settings;
  return { settings, p: a === undefined || b === undefined ? undefined : fisherExact(a, b) };
}

function resultOf(setting: string, runs: readonly Run[]): SettingResult {
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

export function runsAsJson(runs: readonly Run[], { settings, p }: Comparison) {
  return {
    runs: runs.map(({ source, setting, number, sent, before }) => ({
      sample: source,
      ...(setting !== '' && { setting }),
      run: number,
      status: sent.status,
      error: sent.failure ?? null,
      prompt_tokens: sent.promptTokens ?? null,
      output_tokens: sent.outputTokens ?? null,
      first_byte_ms: sent.firstByte === undefined ? null : Math.round(sent.firstByte),
      ms: Math.round(sent.total),
      target: sent.target,
      notes: sent.notes,
      request_id: sent.id,
      ...(before !== undefined && {
        recorded: {
          status: before.status,
          error: before.failure ?? null,
          prompt_tokens: before.promptTokens ?? null,
          output_tokens: before.outputTokens ?? null,
        },
      }),
    })),
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

const said = ({ status, failure }: Outcome) =>
  failure === undefined
    ? String(status)
    : `${status} ${failure.how === 'error' ? failure.kind : failure.how}`;
const shorter = (text: string) => (text.length > 60 ? `${text.slice(0, 59)}…` : text);

export function tellRuns(out: Terminal, runs: readonly Run[], { settings, p }: Comparison): void {
  const compared = settings.length > 1;
  const head = [
    'SAMPLE',
    ...(compared ? ['SETTING'] : []),
    'BEFORE',
    'STATUS',
    'ERROR',
    'PROMPT',
    'OUTPUT',
    'TIME',
    'TARGET',
  ];
  const rows = runs.map(({ source, setting, sent, before }) => [
    source,
    ...(compared ? [setting] : []),
    before === undefined ? '' : said(before),
    String(sent.status),
    shorter(sent.failure?.message ?? ''),
    String(sent.promptTokens ?? ''),
    String(sent.outputTokens ?? ''),
    millis(sent.total),
    sent.target,
  ]);
  const [first, ...lines] = table(rows, head);
  out.line(out.paint('bold', first!));
  lines.forEach((line, i) => {
    out.line(runs[i]!.sent.failure === undefined ? line : out.paint('red', line));
  });
  if (runs.length < 2) return;
  out.line();
  for (const { setting, failed, passed, rate, interval } of settings) {
    const range = `${percent(interval[0])} to ${percent(interval[1])}`;
    const name = setting === '' ? '' : `${setting}: `;
    out.line(
      `${name}${failed} of ${failed + passed} failed (${percent(rate)}; 95 % interval ${range})`,
    );
  }
  if (p === undefined) return;
  const verdict =
    p < SIGNIFICANT
      ? 'the difference is more than chance'
      : 'the difference may be chance: repeat more often to know';
  out.line(
    `${verdict} (Fisher's exact test, p = ${p < 0.001 ? p.toExponential(1) : p.toFixed(3)})`,
  );
}
