/** The one place where tokens become money: integers of nano-USD, rounded up once for each try. */

import { PART_RATES, type Rates } from '../config/sections/prices.ts';
import { totalInput, totalOutput, type Usage } from '../conversation/usage.ts';

/** 1e-9 USD. More than any try can cost; sums of thousands of them are still exact in SQLite. */
export const MAX_NANO_USD = 1e15;
/** A vendor that reports more tokens than this for one try is believed up to here. */
const MAX_TOKENS = 1e12;

/** Picodollars (1e-12 USD) for one token: prices are given in USD per million, with six decimals at most. */
const perToken = (usdPerMillion: number): number => Math.round(usdPerMillion * 1e6);
const perThousandth = (usdPerThousand: number): number => Math.round(usdPerThousand * 1e9);

type Part = keyof typeof PART_RATES;
const PARTS = Object.keys(PART_RATES) as Part[];
const NO_DIFFERENCES: readonly (readonly [part: Part, pico: number])[] = [];

type Counted = readonly (readonly [count: number, pico: number])[];
const NOTHING: Counted = [];

/** Prices as integers of picodollars. */
export class PicoRates {
  readonly input: number;
  readonly output: number;
  readonly cached: number;
  readonly cacheWrite: number;
  readonly cacheWrite1h: number;
  readonly reasoning: number;
  readonly search: number;
  readonly request: number;
  readonly #second: number;
  readonly #character: number;
  /** What a token of a part costs more or less than a usual one. */
  readonly #differences: readonly (readonly [part: Part, pico: number])[];

  constructor(rates: Rates) {
    this.input = perToken(rates.input);
    this.output = perToken(rates.output);
    this.cached = perToken(rates.cached);
    this.cacheWrite = perToken(rates.cacheWrite);
    this.cacheWrite1h = perToken(rates.cacheWrite1h);
    this.reasoning = perToken(rates.reasoning);
    this.search = perThousandth(rates.search);
    this.request = perThousandth(rates.request);
    this.#second = Math.round(perThousandth(rates.minute ?? 0) / 60);
    this.#character = perToken(rates.character ?? 0);
    const known = PARTS.filter((part) => rates[part] !== undefined);
    this.#differences =
      known.length === 0
        ? NO_DIFFERENCES
        : known.map((part) => [part, perToken(rates[part]!) - this[PART_RATES[part]]] as const);
  }

  /**
   * The same if the whole prompt is written to the cache, and all that is generated costs what the dearest kind does; of
   * parts, those that the usage has.
   */
  mostOf(usage: Usage): number {
    const { input, output, cacheWrite, cacheWrite1h, reasoning } = this;
    const pico =
      this.request +
      wholeTokens(totalInput(usage)) * Math.max(input, cacheWrite, cacheWrite1h) +
      wholeTokens(totalOutput(usage)) * Math.max(output, reasoning) +
      this.#besideOf(usage).reduce((sum, [count, price]) => sum + count * Math.max(0, price), 0);
    return Math.min(MAX_NANO_USD, Math.ceil(pico / 1000));
  }

  /** Counts and prices of what is not tokens, and of parts of the tokens; mostly nothing. */
  #besideOf({ parts, seconds, characters, input, output }: Usage): Counted {
    const isInParts = parts !== undefined && this.#differences !== NO_DIFFERENCES;
    if (!isInParts && seconds === undefined && characters === undefined) return NOTHING;
    const beside: (readonly [number, number])[] = [
      [wholeTokens(seconds ?? 0), this.#second],
      [wholeTokens(characters ?? 0), this.#character],
    ];
    if (!isInParts) return beside;
    const rest = { input: wholeTokens(input), output: wholeTokens(output) };
    for (const [part, difference] of this.#differences) {
      const whole = PART_RATES[part];
      const count = Math.min(rest[whole], wholeTokens(parts[part] ?? 0));
      rest[whole] -= count;
      beside.push([count, difference]);
    }
    return beside;
  }

  /**
   * Nano-USD for one try that was answered, rounded up.
   * @param searches those that are paid for
   */
  costOf(usage: Usage, searches = searchesOf(usage)): number {
    const { cacheRead = 0, cacheWrite = 0, cacheWrite1h = 0, reasoning = 0 } = usage;
    const hour = Math.min(cacheWrite1h, cacheWrite);
    let pico =
      this.request +
      wholeTokens(usage.input) * this.input +
      wholeTokens(cacheRead) * this.cached +
      wholeTokens(cacheWrite - hour) * this.cacheWrite +
      wholeTokens(hour) * this.cacheWrite1h +
      wholeTokens(usage.output) * this.output +
      wholeTokens(reasoning) * this.reasoning +
      wholeTokens(searches) * this.search;
    for (const [count, price] of this.#besideOf(usage)) pico += count * price;
    // Up to here every product and sum is an exact integer.
    if (pico > Number.MAX_SAFE_INTEGER) return this.#largeCostOf(usage, searches);
    const rest = pico % 1000;
    return Math.min(MAX_NANO_USD, (pico - rest) / 1000 + (rest > 0 ? 1 : 0));
  }

  #largeCostOf(usage: Usage, searches: number): number {
    const { cacheRead = 0, cacheWrite = 0, cacheWrite1h = 0, reasoning = 0 } = usage;
    const hour = Math.min(cacheWrite1h, cacheWrite);
    const parts: readonly (readonly [number, number])[] = [
      [1, this.request],
      [usage.input, this.input],
      [cacheRead, this.cached],
      [cacheWrite - hour, this.cacheWrite],
      [hour, this.cacheWrite1h],
      [usage.output, this.output],
      [reasoning, this.reasoning],
      [searches, this.search],
      ...this.#besideOf(usage),
    ];
    let pico = 0n;
    for (const [count, price] of parts) pico += BigInt(wholeTokens(count)) * BigInt(price);
    const nano = (pico + 999n) / 1000n;
    return nano > BigInt(MAX_NANO_USD) ? MAX_NANO_USD : Number(nano);
  }
}

/** Searches of the vendor's own tool. */
export const searchesOf = ({ hosted }: Usage): number => hosted?.web_search_requests ?? 0;

/** A vendor's count as a whole number within bounds. */
export const wholeTokens = (count: number): number =>
  Math.min(MAX_TOKENS, Math.ceil(Math.max(0, count)));
