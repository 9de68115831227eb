/** The interceptor: leaked markup out of the text, structured calls in, everything else as it came. */

import type {
  BlockHead,
  BlockStartEvent,
  DeltaEvent,
  FinishEvent,
  StreamEvent,
} from '../../conversation/events.ts';
import type { FastInterceptor } from '../../conversation/fast-text.ts';
import type { Notes } from '../../conversation/notes.ts';
import { prefixedId } from '../../lib/text/ids.ts';
import type { Interceptor } from '../feature.ts';
import { callKey, NativeCalls, type NativeOutput, type NativeRules } from './native-calls.ts';
import type { RecoveredCall } from './raw-call.ts';
import type { Channel, Leak } from './scan/call-run.ts';
import type { ScanRules, Verdict } from './scan/scan-rules.ts';
import { TextScanner } from './scan/text-scanner.ts';

export interface InterceptRules {
  /** For text blocks, and for reasoning blocks. */
  readonly text: ScanRules;
  readonly reasoning: ScanRules;
  readonly native: NativeRules;
  /**
   * Reasoning passes as it came, whatever is found in it: its signature holds for the very text, and
   * who signs it wants both back.
   */
  readonly signed: boolean;
  readonly notes: Notes;
  report(family: string, outcome: Leak['outcome']): void;
}

const NOTHING: readonly StreamEvent[] = [];

/** A block of text has ended with calls: what follows in the reply says whether they are any. */
interface Undecided {
  readonly scanner: TextScanner;
  readonly stop: StreamEvent;
  /** Events behind it, as they came. */
  readonly queue: StreamEvent[];
  /** Looks for words in the block of text that is open behind it. */
  probe: TextScanner | undefined;
  /** Characters in the queue. */
  size: number;
}

/** Characters of a tool's name in a note. */
const LONGEST_NAME = 128;
/** More text than this does not wait for what follows. */
const MOST_QUEUED = 8 * 1024 * 1024;

interface Found extends Leak {
  /** Its markup was not taken out. */
  readonly stays: boolean;
}

/** An interceptor for one hop. Recovered calls come out in front of the finish. */
export function interceptor(rules: InterceptRules): Interceptor {
  return new LeakInterceptor(rules);
}

class LeakInterceptor implements Interceptor, FastInterceptor {
  readonly #rules: InterceptRules;
  readonly #native: NativeCalls;
  #scanner: TextScanner | undefined;
  #channel: Channel = 'text';
  #start: BlockStartEvent | undefined;
  /** Events of the block being scanned that wait for a verdict, its start among them. */
  #held: StreamEvent[] = [];
  /** Text of the block being scanned was replaced. */
  #altered = false;
  /** The block being scanned passes whatever is found. */
  #watches = false;
  #undecided: Undecided | undefined;
  /** What becomes of calls at the end of the blocks that come out of the queue. */
  #verdict: boolean | undefined;
  /** The block that is open for the client. */
  #open: Channel | 'other' | undefined;
  #next = 0;
  #hasMoved = false;
  #spoken = false;
  readonly #found: Found[] = [];
  #out: StreamEvent[] = [];

  constructor(rules: InterceptRules) {
    this.#rules = rules;
    this.#native = new NativeCalls(rules.native);
  }

  event(event: StreamEvent): StreamEvent | readonly StreamEvent[] {
    if (this.#undecided !== undefined) {
      this.#wait(this.#undecided, event);
      return this.#take();
    }
    if (event.type === 'delta') {
      const scanner = this.#scanner;
      if (scanner === undefined && !this.#native.holding) {
        return this.#native.passes(event) ? this.#placed(event) : NOTHING;
      }
      // The way of nearly every event: nothing held, nothing found, nothing moved.
      if (scanner !== undefined && this.#held.length === 0 && this.#open === scanner.channel) {
        const verdict = scanner.push(event.text);
        if (verdict === 'same' || this.#watches) {
          return event.index === this.#next - 1 ? event : this.#placed(event);
        }
        this.#held.push(event);
        if (verdict === 'changed') this.#replace(scanner);
        return this.#take();
      }
    }
    this.#event(event);
    return this.#take();
  }

  end(): readonly StreamEvent[] {
    if (this.#undecided !== undefined) this.#decide(this.#undecided, true);
    this.#closeText(undefined);
    this.#emitAll(this.#native.end());
    this.#calls();
    return this.#take();
  }

  #take(): readonly StreamEvent[] {
    const out = this.#out;
    this.#out = [];
    return out;
  }

  /** An event behind calls that are not decided upon. */
  #wait(undecided: Undecided, event: StreamEvent): void {
    switch (event.type) {
      case 'block-start': {
        const { head } = event;
        if (head.type === 'text' || head.type === 'reasoning') {
          const { text, reasoning } = this.#rules;
          const rules = head.type === 'text' ? text : reasoning;
          undecided.probe = new TextScanner(head.type, rules, false);
          break;
        }
        this.#decide(undecided, head.type === 'tool-call' && head.by !== 'provider');
        this.#event(event);
        return;
      }
      case 'delta':
        undecided.size += event.text.length;
        undecided.probe?.push(event.text);
        break;
      case 'block-stop':
        undecided.probe?.finish();
        break;
      case 'finish':
      case 'end':
      case 'error':
        this.#decide(undecided, true);
        this.#event(event);
        return;
      default:
    }
    undecided.queue.push(event);
    if (undecided.probe?.hasWords || undecided.size > MOST_QUEUED) this.#decide(undecided, false);
    else if (event.type === 'block-stop') undecided.probe = undefined;
  }

  /** Nothing but calls follows the block that waits, or something does; then the queue goes on. */
  #decide({ scanner, stop, queue }: Undecided, stand: boolean): void {
    this.#undecided = undefined;
    this.#closed(scanner, scanner.decide(stand), stop);
    this.#verdict = stand;
    for (const event of queue) this.#event(event);
    this.#verdict = undefined;
  }

  #event(event: StreamEvent): void {
    switch (event.type) {
      case 'block-start':
        this.#nativeOut(this.#native.decide(undefined));
        this.#blockStart(event);
        break;
      case 'delta':
        this.#delta(event);
        break;
      case 'block-stop':
        if (this.#scanner !== undefined) this.#closeText(event);
        else if (this.#open === 'other' || this.#native.holding) {
          this.#nativeOut(this.#native.stop(event));
        } else this.#emit(event);
        break;
      case 'finish':
        this.#finish(event);
        break;
      case 'end':
        this.#closeText(undefined);
        this.#emitAll(this.#native.end());
        this.#calls();
        this.#emit(event);
        break;
      case 'sealed':
        // A signature is bound to the text that it was made for.
        if (this.#scanner !== undefined && this.#altered) break;
        this.#beside(event);
        break;
      default:
        this.#beside(event);
    }
  }

  /** An event that is no text of the open block: in its place in the order. */
  #beside(event: StreamEvent): void {
    if (this.#scanner !== undefined && this.#held.length > 0) this.#held.push(event);
    else if (this.#native.holding) this.#nativeOut(this.#native.beside(event));
    else this.#emit(event);
  }

  #blockStart(event: BlockStartEvent): void {
    const { head } = event;
    if (head.type === 'text' || head.type === 'reasoning') {
      this.#channel = head.type;
      const rules = head.type === 'text' ? this.#rules.text : this.#rules.reasoning;
      this.#scanner = new TextScanner(head.type, rules, !this.#spoken);
      this.#start = event;
      this.#held = [event];
      this.#altered = false;
      this.#watches = head.type === 'reasoning' && this.#rules.signed;
      return;
    }
    this.#scanner = undefined;
    if (head.type === 'tool-call') this.#nativeOut(this.#native.start(event, head));
    else this.#emit(event);
  }

  #delta(event: DeltaEvent): void {
    const scanner = this.#scanner;
    if (scanner === undefined) {
      this.#nativeOut(this.#native.delta(event));
      return;
    }
    this.#held.push(event);
    const verdict = scanner.push(event.text);
    if (verdict === 'same' || this.#watches) this.#release(scanner);
    else if (verdict === 'changed') this.#replace(scanner);
  }

  /** What was held, as it came. */
  #release(scanner: TextScanner): void {
    const held = this.#held;
    this.#held = [];
    for (const event of held) {
      if (event.type === 'delta') this.#openFor(this.#watches ? 'reasoning' : scanner.channel);
      this.#emit(event);
    }
  }

  /** Segments in place of the text that was held. */
  #replace(scanner: TextScanner): void {
    this.#leaks(scanner);
    this.#altered = true;
    const held = this.#held;
    this.#held = [];
    for (const { channel, text } of scanner.takeSegments()) {
      this.#openFor(channel);
      this.#out.push({ type: 'delta', index: this.#next - 1, text });
      if (channel === 'text') this.#spoken = true;
      else if (this.#channel === 'text') this.#moved();
    }
    for (const event of held) {
      if (event.type === 'block-start' || event.type === 'delta') continue;
      // What belongs to a text that is gone goes with it.
      if (event.type === 'logprobs' || event.type === 'sealed') continue;
      if (event.type === 'citation' && this.#open !== 'text') continue;
      this.#emit(event);
    }
  }

  /** Thinking that stood in the answer has become reasoning. */
  #moved(): void {
    if (this.#hasMoved) return;
    this.#hasMoved = true;
    this.#rules.notes.add('leaked_thinking_moved');
  }

  #openFor(channel: Channel): void {
    if (this.#open === channel) return;
    this.#closeOpen();
    const own = this.#start?.head;
    const head: BlockHead = own?.type === channel ? own : { type: channel };
    this.#emit({ type: 'block-start', index: this.#next, head });
  }

  #closeOpen(): void {
    if (this.#open === undefined) return;
    this.#out.push({ type: 'block-stop', index: this.#next - 1 });
    this.#open = undefined;
  }

  #closeText(stop: StreamEvent | undefined): void {
    const scanner = this.#scanner;
    if (scanner === undefined) return;
    this.#scanner = undefined;
    const verdict = scanner.finish();
    if (verdict !== 'open') this.#closed(scanner, verdict, stop);
    else if (stop === undefined) this.#closed(scanner, scanner.decide(true), stop);
    else if (this.#verdict !== undefined) {
      this.#closed(scanner, scanner.decide(this.#verdict), stop);
    } else {
      this.#undecided = { scanner, stop, queue: [], probe: undefined, size: 0 };
    }
  }

  /** A block of text is over. */
  #closed(scanner: TextScanner, verdict: Verdict, stop: StreamEvent | undefined): void {
    this.#leaks(scanner);
    if (verdict === 'changed' && !this.#watches) this.#replace(scanner);
    else if (this.#isBlank() && this.#found.some(({ calls }) => calls.length > 0)) this.#held = [];
    else this.#release(scanner);
    if (this.#open === undefined) return;
    if (stop !== undefined) this.#emit(stop);
    else if (this.#found.some(({ calls }) => calls.length > 0)) this.#closeOpen();
  }

  /** All of the block is whitespace that nobody has seen yet. */
  #isBlank(): boolean {
    return (
      this.#held[0]?.type === 'block-start' &&
      this.#held.every((event) => event.type !== 'delta' || event.text.trim() === '')
    );
  }

  #leaks(scanner: TextScanner): void {
    for (const leak of scanner.leaks) this.#leak(leak);
    scanner.leaks = [];
  }

  #leak(leak: Leak): void {
    if (this.#watches && leak.calls.length === 0) return;
    const channel = this.#channel === 'text' ? leak.channel : this.#channel;
    this.#found.push({ ...leak, channel, stays: this.#watches });
    if (leak.calls.length > 0) return;
    this.#rules.report(leak.family, leak.outcome);
    if (leak.outcome === 'left') {
      const name = leak.unknown === undefined ? '' : `: ${leak.unknown.slice(0, LONGEST_NAME)}`;
      const what = `${leak.family}${name}`;
      const { notes } = this.#rules;
      if (leak.why === 'quoted') notes.add('leaked_call_quoted', undefined, what);
      else if (leak.why !== undefined) notes.add('leaked_call_left', undefined, what);
      return;
    }
    const unknown = leak.unknown?.slice(0, LONGEST_NAME) ?? 'that can be called';
    const what = leak.truncated ? 'broke off' : `no tool ${unknown}`;
    this.#rules.notes.add('leaked_markup_removed', undefined, `${leak.family}: ${what}`);
  }

  #nativeOut(output: NativeOutput): void {
    const { notes } = this.#rules;
    this.#emitAll(output.events);
    for (const call of output.calls ?? []) this.#emitCall(call);
    if (output.calls !== undefined && output.family !== undefined) {
      this.#rules.report(output.family, 'recovered');
      for (const { name } of output.calls) {
        notes.add('leaked_call_recovered', undefined, `${output.family}: ${name}`);
      }
    } else if (output.calls !== undefined) {
      notes.add('tool_arguments_repaired', undefined, 'multi_tool_use.parallel');
    }
    if (output.repaired !== undefined) {
      notes.add('tool_arguments_repaired', undefined, output.repaired);
    }
  }

  /** The recovered calls, but for those that the vendor has sent as structured calls too. */
  #calls(): number {
    const found = this.#found.filter(({ calls }) => calls.length > 0);
    if (found.length === 0) return 0;
    this.#found.length = 0;
    const native = this.#native.keys();
    const inText = new Set(
      found.flatMap(({ channel, calls }) =>
        channel === 'text' ? calls.map(({ name, input }) => callKey(name, input)) : [],
      ),
    );
    let count = 0;
    for (const { channel, calls, family, stays } of found) {
      // Thinking that drafts a call which is then made is no second call.
      const kept = calls.filter(({ name, input }) => {
        const key = callKey(name, input);
        if (native.has(key)) return false;
        return channel === 'text' || (native.size === 0 && !inText.has(key));
      });
      for (const call of kept) this.#emitCall(call);
      count += kept.length;
      if (kept.length === 0 && stays) continue;
      this.#rules.report(family, kept.length > 0 ? 'recovered' : 'removed');
      const { notes } = this.#rules;
      if (kept.length === 0) notes.add('leaked_markup_removed', undefined, `${family}: a copy`);
      for (const { name, repaired } of kept) {
        notes.add('leaked_call_recovered', undefined, `${family}: ${name}`);
        if (repaired) notes.add('tool_arguments_repaired', undefined, name);
      }
    }
    return count;
  }

  #emitCall(call: RecoveredCall): void {
    const { name, namespace, kind, input } = call;
    const index = this.#next;
    const head: BlockHead = {
      type: 'tool-call',
      id: prefixedId('call_'),
      name,
      ...(namespace === undefined ? {} : { namespace }),
      kind,
      by: 'client',
    };
    this.#emit({ type: 'block-start', index, head });
    this.#emit({ type: 'delta', index, text: input });
    this.#emit({ type: 'block-stop', index });
  }

  #finish(event: FinishEvent): void {
    this.#closeText(undefined);
    this.#nativeOut(this.#native.decide(event.reason));
    const truncated = this.#found.some((leak) => leak.truncated && leak.calls.length === 0);
    const calls = this.#calls();
    const { reason } = event;
    if (calls > 0 && reason !== 'refusal' && reason !== 'content-filter') {
      if (reason === 'tool-calls') this.#emit(event);
      else this.#emit({ type: 'finish', reason: 'tool-calls', details: event.details });
    } else if (truncated && reason === 'stop' && this.#native.count === 0) {
      // The reply was cut within markup; it is no natural end.
      this.#emit({ type: 'finish', reason: 'length', details: event.details });
    } else this.#emit(event);
  }

  #emitAll(events: readonly StreamEvent[]): void {
    for (const event of events) this.#emit(event);
  }

  /** Lets an event go, at the index that its block has for the client. */
  #emit(event: StreamEvent): void {
    if (event.type === 'block-start') {
      this.#closeOpen();
      const { head } = event;
      this.#open = head.type === 'text' || head.type === 'reasoning' ? head.type : 'other';
      this.#next++;
      if (head.type !== 'reasoning' && head.type !== 'text') this.#spoken = true;
    }
    if (event.type === 'delta' && this.#open === 'text') this.#spoken = true;
    this.#out.push(this.#placed(event));
    if (event.type === 'block-stop') this.#open = undefined;
  }

  #placed(event: StreamEvent): StreamEvent {
    if (!('index' in event) || event.index === this.#next - 1) return event;
    return { ...event, index: this.#next - 1 };
  }

  get fast(): FastInterceptor {
    return this;
  }

  passesText({ index, text }: DeltaEvent): boolean {
    const scanner = this.#scanner;
    if (scanner === undefined || this.#held.length > 0 || this.#open !== scanner.channel)
      return false;
    return index === this.#next - 1 && (this.#watches || scanner.passes(text));
  }

  watchedCharacters(): string | undefined {
    const scanner = this.#scanner;
    if (scanner === undefined || this.#held.length > 0 || this.#open !== scanner.channel)
      return undefined;
    if (this.#start?.index !== this.#next - 1) return undefined;
    return this.#watches ? '' : scanner.watchedCharacters();
  }
}
