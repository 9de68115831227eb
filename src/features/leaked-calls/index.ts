/** Recovers tool calls that leaked into the answer as text, on every provider, for every protocol. */

import type { Notes } from '../../conversation/notes.ts';
import type { Target } from '../../conversation/target.ts';
import { mentionsTools } from '../../conversation/tools/tool-texts.ts';
import type { Conversation, ProtocolName } from '../../conversation/types.ts';
import { type Feature, type Interceptor, lazyInterceptor } from '../feature.ts';
import { type Lexicon, lexicon } from './grammar.ts';
import { EVERYTHING, FAMILIES } from './grammars/index.ts';
import { interceptor } from './intercept.ts';
import { quotationsIn } from './scan/quotations.ts';
import type { ScanRules } from './scan/scan-rules.ts';
import { Search } from './scan/search.ts';
import { TextScanner } from './scan/text-scanner.ts';
import { toolIndex } from './tool-index.ts';
import { Repairs } from './values/repair-json.ts';

export { FAMILIES } from './grammars/index.ts';

export interface LeakReport {
  readonly family: string;
  /** recovered: became a call; removed: markup taken out; left: given up, it stays in the text. */
  readonly outcome: 'recovered' | 'removed' | 'left';
  readonly target: Target;
}

/** Thinking without its opener: only where a profile names it, since all text has to wait for it. */
const OPT_IN = 'think-unopened';
const DEFAULT_FAMILIES: readonly string[] = FAMILIES.filter((family) => family !== OPT_IN);

/**
 * On Messages `<think>` stays text: thinking made of it would have no signature, and Anthropic refuses
 * such a block when the client sends it back.
 */
const WITHOUT_THINK = DEFAULT_FAMILIES.filter((family) => family !== 'think-tags');

const defaultFamilies = (protocol: ProtocolName) =>
  protocol === 'anthropic-messages' ? WITHOUT_THINK : DEFAULT_FAMILIES;

interface Grammar {
  readonly families: ReadonlySet<string>;
  /** Every word, and those that may begin a leak in text, and in reasoning. */
  readonly all: Lexicon;
  readonly text: Lexicon;
  readonly reasoning: Lexicon;
}

/** By the very list of a profile; profiles are few, and made once. */
const grammars = new WeakMap<readonly string[], Grammar>();

function grammarOf({ profile, protocol }: Target): Grammar {
  const families = profile.leakFamilies ?? defaultFamilies(protocol);
  const known = grammars.get(families);
  if (known !== undefined) return known;
  const inForce = new Set(families);
  const words = [...EVERYTHING.words.values()].filter(
    ({ family }) => family === 'stop' || inForce.has(family),
  );
  const begins = words.filter(({ opens, setting }) => opens !== undefined || setting !== 'plain');
  const grammar: Grammar = {
    families: inForce,
    all: lexicon(words, true),
    text: lexicon(begins),
    // Vendors' own reasoning may show its tags; that is no leak.
    reasoning: lexicon(begins.filter(({ family }) => family !== 'think-tags')),
  };
  grammars.set(families, grammar);
  return grammar;
}

/** Where it looks although the client's body gives no reason to. */
export interface LeakWatch {
  /** Bodies without a word of tools, too: tools are added on the way. */
  readonly everyBody?: boolean;
  /** And answers to requests that know of no tool at all. */
  readonly everyAnswer?: boolean;
}

/**
 * @param report told of every leak, for the log (vendor, model, family) and the metric
 *   `leaked_calls_total{family,outcome}`
 */
export function leakedCalls(
  report: (leak: LeakReport) => void,
  { everyBody = false, everyAnswer = false }: LeakWatch = {},
): Feature {
  return {
    name: 'leaked-calls',
    mayApply: (body) => everyBody || everyAnswer || mentionsTools(body),
    intercept(sent, { target, notes }) {
      const { leakFamilies } = target.profile;
      if (leakFamilies?.length === 0) return undefined;
      // Without tools nothing can be called, but a history of calls makes models write them.
      if (!everyAnswer && sent.tools.length === 0 && !hasCalls(sent)) return undefined;
      const grammar = grammarOf(target);
      return lazyInterceptor(
        (texts) => !grammar.families.has(OPT_IN) && texts.every(TextScanner.isPlain),
        () => scanInterceptor({ sent, target, notes, grammar, report }),
      );
    },
  };
}

interface ScannedAnswer {
  readonly sent: Conversation;
  readonly target: Target;
  readonly notes: Notes;
  readonly grammar: Grammar;
  readonly report: (leak: LeakReport) => void;
}

function scanInterceptor({ sent, target, notes, grammar, report }: ScannedAnswer): Interceptor {
  const callable = sent.settings.toolChoice?.type !== 'none';
  const all = toolIndex(sent.tools);
  const tools = callable ? all : NO_TOOLS;
  const { format } = sent.settings;
  const plain = format === undefined || format.type === 'text';
  const repairs = new Repairs();
  const rules: Omit<ScanRules, 'lexicon'> = {
    all: grammar.all,
    tools,
    repairs,
    search: new Search(),
    isQuotation: quotationsIn(sent.turns),
    json: plain && tools.size > 0 && grammar.families.has('json'),
    results: grammar.families.has('tool-result'),
    pythonic: plain && grammar.families.has('pythonic'),
    unopened: grammar.families.has(OPT_IN),
  };
  return interceptor({
    text: { ...rules, lexicon: grammar.text },
    reasoning: { ...rules, lexicon: grammar.reasoning, unopened: false },
    native: { tools: all, all: EVERYTHING, repairs, provider: target.provider },
    signed: target.protocol === 'anthropic-messages',
    notes,
    report: (family, outcome) => report({ family, outcome, target }),
  });
}

const NO_TOOLS = toolIndex([]);

const hasCalls = (sent: Conversation): boolean =>
  sent.turns.some(({ blocks }) => blocks.some(({ type }) => type === 'tool-call'));
