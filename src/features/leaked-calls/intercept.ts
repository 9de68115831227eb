/** The interceptor: removes leaked markup from text, adds structured calls, passes everything else unchanged. */

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
import type { RecoveredCall } from './build-calls.ts';
import { callKey, NativeCalls, type NativeOutput, type NativeRules } from './native-calls.ts';
import type { Leak } from './scan/call-run.ts';
import type { ScanRules, ScanVerdict } from './scan/openings.ts';
import type { Channel } from './scan/text-out.ts';
import { TextScanner } from './scan/text-scanner.ts';

export interface InterceptRules {
  /** For text blocks, and for reasoning blocks. */
  readonly text: ScanRules;
  readonly reasoning: ScanRules;
  readonly native: NativeRules;
  /**
   * Reasoning passes unchanged even if it holds leaks: its signature covers the exact text, and the vendor
   * expects both back.
   */
  readonly signed: boolean;
  /** Once text of the answer has passed, the search is over. */
  readonly startOnly: boolean;
  readonly notes: Notes;
  report(family: string, outcome: Leak['outcome']): void;
}

const NOTHING: readonly StreamEvent[] = [];

/** A block of text that ended with calls. What follows in the reply decides whether they are real. */
interface UndecidedBlock {
  readonly scanner: TextScanner;
  readonly stop: StreamEvent;
  /** Later events, as they came. */
  readonly queue: StreamEvent[];
  /** Looks for text in the block that is open after it. */
  probe: TextScanner | undefined;
  /** Characters in the queue. */
  size: number;
}

/** Maximum characters of a tool's name in a note. */
const MAX_NAME = 128;
/** Maximum characters that wait for what follows. */
const MAX_QUEUED = 8 * 1024 * 1024;

interface FoundLeak extends Leak {
  /** Its markup was not removed. */
  readonly stays: boolean;
}

/** For one hop. Recovered calls are emitted before the finish. */
export class LeakInterceptor implements Interceptor, FastInterceptor {
  readonly #native: NativeCalls;
  #scanner: TextScanner | undefined;
  #channel: Channel = 'text';
  #start: BlockStartEvent | undefined;
  /** Held events of the block being scanned, including its start. */
  #held: StreamEvent[] = [];
  /** Text of the block being scanned was replaced. */
  #altered = false;
  /** The block being scanned passes unchanged; it is only searched for calls. */
  #watches = false;
  #undecided: UndecidedBlock | undefined;
  /** While the queue is processed: whether calls at the end of its blocks are real. */
  #verdict: boolean | undefined;
  /** The block that the client sees as open. */
  #open: Channel | 'other' | undefined;
  #next = 0;
  #hasMoved = false;
  /** Nothing is looked for any more: all events pass. */
  #over = false;
  #spoken = false;
  readonly #found: FoundLeak[] = [];
  #out: StreamEvent[] = [];

  constructor(private readonly rules: InterceptRules) {
    this.#native = new NativeCalls(rules.native);
  }

  event(event: StreamEvent): StreamEvent | readonly StreamEvent[] {
    if (this.#over) return event;
    if (this.#undecided !== undefined) {
      this.#wait(this.#undecided, event);
      return this.#take();
    }
    if (event.type === 'delta') {
      const scanner = this.#scanner;
      if (scanner === undefined && !this.#native.holding) {
        return this.#native.passes(event) ? this.#placed(event) : NOTHING;
      }
      // Nearly every event: nothing is held, found or moved.
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
    if (this.#over) return NOTHING;
    if (this.#undecided !== undefined) this.#decide(this.#undecided, true);
    this.#closeText(undefined);
    this.#emitAll(this.#native.end());
    this.#dropUnclosed();
    this.#calls();
    return this.#take();
  }

  #take(): readonly StreamEvent[] {
    const out = this.#out;
    this.#out = [];
    return out;
  }

  /** Handles an event after calls that are still undecided. */
  #wait(undecided: UndecidedBlock, event: StreamEvent): void {
    switch (event.type) {
      case 'block-start': {
        const { head } = event;
        if (head.type === 'text' || head.type === 'reasoning') {
          const { text, reasoning } = this.rules;
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
    if (undecided.probe?.hasWords || undecided.size > MAX_QUEUED) this.#decide(undecided, false);
    else if (event.type === 'block-stop') undecided.probe = undefined;
  }

  /** Decides on the waiting block, then processes the queue. `stand`: only calls follow it. */
  #decide({ scanner, stop, queue }: UndecidedBlock, stand: boolean): void {
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
        // A signature is valid only for the original text.
        if (this.#scanner !== undefined && this.#altered) break;
        this.#beside(event);
        break;
      default:
        this.#beside(event);
    }
  }

  /** Handles an event other than text of the open block, in order. */
  #beside(event: StreamEvent): void {
    if (this.#scanner !== undefined && this.#held.length > 0) this.#held.push(event);
    else if (this.#native.holding) this.#nativeOut(this.#native.beside(event));
    else this.#emit(event);
  }

  #blockStart(event: BlockStartEvent): void {
    const { head } = event;
    if (head.type === 'text' || head.type === 'reasoning') {
      this.#channel = head.type;
      const rules = head.type === 'text' ? this.rules.text : this.rules.reasoning;
      this.#scanner = new TextScanner(head.type, rules, !this.#spoken);
      this.#start = event;
      this.#held = [event];
      this.#altered = false;
      this.#watches = head.type === 'reasoning' && this.rules.signed;
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

  /** Emits held events unchanged. */
  #release(scanner: TextScanner): void {
    const held = this.#held;
    this.#held = [];
    for (const event of held) {
      if (event.type === 'delta') this.#openFor(this.#watches ? 'reasoning' : scanner.channel);
      this.#emit(event);
    }
    this.#over = this.rules.startOnly && this.#spoken && !this.#hasMoved;
  }

  /** Emits the scanner's segments instead of the held text. */
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
      // Drop what belongs to the replaced text.
      if (event.type === 'logprobs' || event.type === 'sealed') continue;
      if (event.type === 'citation' && this.#open !== 'text') continue;
      this.#emit(event);
    }
  }

  /** Thinking in the answer's text has become reasoning. */
  #moved(): void {
    if (this.#hasMoved) return;
    this.#hasMoved = true;
    this.rules.notes.add('leaked_thinking_moved');
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

  /** Handles the end of a block of text. */
  #closed(scanner: TextScanner, verdict: ScanVerdict, stop: StreamEvent | undefined): void {
    this.#leaks(scanner);
    if (verdict === 'changed' && !this.#watches) this.#replace(scanner);
    else if (this.#isBlank() && this.#found.some(({ calls }) => calls.length > 0)) this.#held = [];
    else this.#release(scanner);
    if (this.#open === undefined) return;
    if (stop !== undefined) this.#emit(stop);
    else if (this.#found.some(({ calls }) => calls.length > 0)) this.#closeOpen();
  }

  /** The whole block is white space and still held. */
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
    this.rules.report(leak.family, leak.outcome);
    if (leak.outcome === 'left') {
      const name = leak.unknown === undefined ? '' : `: ${leak.unknown.slice(0, MAX_NAME)}`;
      const what = `${leak.family}${name}`;
      const { notes } = this.rules;
      if (leak.why === 'quoted') notes.add('leaked_call_quoted', undefined, what);
      else if (leak.why !== undefined) notes.add('leaked_call_left', undefined, what);
      return;
    }
    const unknown = leak.unknown?.slice(0, MAX_NAME) ?? 'that can be called';
    const what = leak.truncated ? 'broke off' : `no tool ${unknown}`;
    this.rules.notes.add('leaked_markup_removed', undefined, `${leak.family}: ${what}`);
  }

  #nativeOut(output: NativeOutput): void {
    const { notes } = this.rules;
    this.#emitAll(output.events);
    for (const call of output.calls ?? []) this.#emitCall(call);
    if (output.calls !== undefined && output.family !== undefined) {
      this.rules.report(output.family, 'recovered');
      for (const { name } of output.calls) {
        notes.add('leaked_call_recovered', undefined, `${output.family}: ${name}`);
      }
    } else if (output.calls !== undefined) {
      notes.add('tool_arguments_repaired', undefined, 'multi_tool_use.parallel');
    }
    if (output.repaired !== undefined) {
      notes.add('tool_arguments_repaired', undefined, output.repaired);
    }
    if (output.misnamed !== undefined) {
      notes.add('tool_name_corrected', undefined, output.misnamed);
    }
  }

  /** Emits the recovered calls, except those that the vendor also sent as structured calls. Returns their number. */
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
      // A call drafted in thinking and then made is only one call.
      const fresh = calls.filter(({ name, input }) => {
        const key = callKey(name, input);
        if (native.has(key)) return false;
        return channel === 'text' || (native.size === 0 && !inText.has(key));
      });
      for (const call of fresh) this.#emitCall(call);
      count += fresh.length;
      if (fresh.length === 0 && stays) continue;
      this.rules.report(family, fresh.length > 0 ? 'recovered' : 'removed');
      const { notes } = this.rules;
      if (fresh.length === 0) notes.add('leaked_markup_removed', undefined, `${family}: a copy`);
      for (const { name, repaired } of fresh) {
        notes.add('leaked_call_recovered', undefined, `${family}: ${name}`);
        if (repaired) notes.add('tool_arguments_repaired', undefined, name);
      }
    }
    return count;
  }

  /** The answer was cut, so a call without its closer may lack arguments. */
  #dropUnclosed(): void {
    this.#found.forEach((leak, i) => {
      const calls = leak.calls.filter(({ unclosed }) => !unclosed);
      if (calls.length === leak.calls.length) return;
      this.#found[i] = { ...leak, calls };
      if (calls.length > 0 || leak.stays) return;
      this.rules.report(leak.family, 'removed');
      this.rules.notes.add('leaked_markup_removed', undefined, `${leak.family}: broke off`);
    });
  }

  #emitCall(call: RecoveredCall): void {
    const { name, namespace, kind, input } = call;
    const index = this.#next;
    const head: BlockHead = {
      type: 'tool-call',
      id: prefixedId('call_'),
      name,
      namespace,
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
    const { reason } = event;
    if (reason === 'length' || reason === 'context-overflow') this.#dropUnclosed();
    const truncated = this.#found.some((leak) => leak.truncated && leak.calls.length === 0);
    const calls = this.#calls();
    if (calls > 0 && reason !== 'refusal' && reason !== 'content-filter') {
      if (reason === 'tool-calls') this.#emit(event);
      else this.#emit({ type: 'finish', reason: 'tool-calls', details: event.details });
    } else if (truncated && reason === 'stop' && this.#native.count === 0) {
      // The reply was cut inside markup, so this is no natural end.
      this.#emit({ type: 'finish', reason: 'length', details: event.details });
    } else this.#emit(event);
  }

  #emitAll(events: readonly StreamEvent[]): void {
    for (const event of events) this.#emit(event);
  }

  /** Emits an event with the block index that the client sees. */
  #emit(event: StreamEvent): void {
    if (event.type === 'block-start') {
      this.#closeOpen();
      const { head } = event;
      this.#open = head.type === 'text' || head.type === 'reasoning' ? head.type : 'other';
      // Only the first of the texts that a block becomes begins a paragraph.
      if (head.type === 'text' && head.paragraph && this.#start !== undefined) {
        this.#start = { ...this.#start, head: { type: 'text' } };
      }
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
    if (this.#over) return true;
    const scanner = this.#scanner;
    if (scanner === undefined || this.#held.length > 0 || this.#open !== scanner.channel)
      return false;
    return index === this.#next - 1 && (this.#watches || scanner.passes(text));
  }

  watchedCharacters(): string | undefined {
    if (this.#over) return '';
    const scanner = this.#scanner;
    if (scanner === undefined || this.#held.length > 0 || this.#open !== scanner.channel)
      return undefined;
    if (this.#start?.index !== this.#next - 1) return undefined;
    return this.#watches ? '' : scanner.watchedCharacters();
  }
}
