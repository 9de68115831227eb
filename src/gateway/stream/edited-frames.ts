/** Steps that change frames: in front of a pipeline, or behind it, such as taking out usage that the client did not ask for. */

import { asGatewayError, type GatewayError } from '../../conversation/errors.ts';
import {
  type FrameLimit,
  isSilent,
  type SseFrame,
  SseParser,
  sseComment,
  sseEvent,
} from '../../lib/bytes/sse.ts';
import { concat, type Output, type StreamPipeline } from './pipeline.ts';
import { PipelineDecorator } from './pipeline-decorator.ts';

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });
const encoder = new TextEncoder();

/** An `EditAnswer` for frames alone: several take the place of one. */
export interface FrameEdit {
  json(json: string, of: 'frame'): string | readonly string[];
  readonly hidden?: string | undefined;
}

/** Frames that stay as they are go on as their own bytes, each when it is whole. */
export class FrameEditor {
  /** The error that ended reading. */
  broken: GatewayError | undefined;
  #parser: SseParser;

  constructor(
    private readonly edit: FrameEdit,
    private readonly limit?: FrameLimit,
  ) {
    this.#parser = new SseParser({ limit });
  }

  shown(out: Output): Output {
    if (out.length === 0 || this.broken !== undefined) return '';
    const shown: Output[] = [];
    try {
      const bytes = typeof out === 'string' ? encoder.encode(out) : out;
      this.#parser.read(bytes, { frame: (frame) => void shown.push(this.#frame(frame)) });
    } catch (thrown) {
      this.broken = asGatewayError(thrown);
    }
    return concat(shown);
  }

  #frame(frame: SseFrame): Output {
    const { event, bytes, from, to } = frame;
    const own = bytes.subarray(from, to);
    const data = frame.data ?? (isSilent(frame) ? '' : undefined);
    if (data === undefined) return own;
    const left = this.edit.json(data, 'frame');
    if (left === data) return own;
    if (typeof left !== 'string') {
      if (left.length === 1 && left[0] === data) return own;
      // A comment counts as a frame that says nothing.
      if (left.length === 0) return sseComment('');
      return left.map((json) => (event === '' ? `data: ${json}\n\n` : named(json))).join('');
    }
    if (left === '') return '';
    const text = utf8.decode(own);
    const at = text.indexOf(data);
    return at < 0
      ? `data: ${left.replaceAll('\n', '\ndata: ')}\n\n`
      : text.slice(0, at) + left + text.slice(at + data.length);
  }

  /** An event has begun. */
  get isInside(): boolean {
    return this.#parser.pending !== undefined;
  }

  /** The bytes of an incomplete event, unless it holds what is hidden. */
  rest(): Output {
    const { pending } = this.#parser;
    this.#parser = new SseParser({ limit: this.limit });
    const { hidden } = this.edit;
    const hides = hidden !== undefined && utf8.decode(pending).includes(`"${hidden}"`);
    return pending === undefined || hides ? '' : pending;
  }
}

const NAME = /"type":\s*"([\w.]+)"/;

const named = (json: string): string => sseEvent(NAME.exec(json)?.[1] ?? '', json);

abstract class EditedPipeline extends PipelineDecorator<StreamPipeline> {
  protected readonly editor: FrameEditor;

  constructor(inner: StreamPipeline, edit: FrameEdit, limit: FrameLimit) {
    super(inner);
    this.editor = new FrameEditor(edit, limit);
  }

  get failure() {
    return this.editor.broken ?? this.inner.failure;
  }

  get error() {
    return this.inner.error;
  }
}

/** The editor in front of a pipeline: the vendor's frames are read, recorded and stored with the change. */
export class EditedInput extends EditedPipeline {
  push(chunk: Uint8Array): Output {
    if (this.failure !== undefined) return '';
    return this.#passed(this.editor.shown(chunk));
  }

  end(): Output {
    if (this.failure !== undefined) return '';
    // A last frame may lack its blank line.
    const rest = this.editor.isInside ? this.editor.shown('\n\n') : '';
    const passed = rest.length === 0 ? '' : this.#passed(rest);
    return concat([passed, this.inner.end()]);
  }

  /** Nothing is passed on, too: the pipeline measures how long a vendor says nothing. */
  #passed(shown: Output): Output {
    return this.inner.push(typeof shown === 'string' ? encoder.encode(shown) : shown);
  }
}

/** The editor behind a pipeline. */
export class EditedFrames extends EditedPipeline {
  push(chunk: Uint8Array): Output {
    return this.editor.shown(this.inner.push(chunk));
  }

  end(): Output {
    const shown = this.editor.shown(this.inner.end());
    return concat([shown, this.editor.rest()]);
  }

  /** What the client gets of this, which the pipeline behind it has given elsewhere. */
  shown(out: Output): Output {
    return this.editor.shown(out);
  }

  override inject(...events: Parameters<StreamPipeline['inject']>): Output {
    return concat([this.editor.rest(), this.editor.shown(this.inner.inject(...events))]);
  }

  override fail(error: GatewayError): string {
    const rest = this.editor.rest();
    return (typeof rest === 'string' ? rest : utf8.decode(rest)) + this.inner.fail(error);
  }

  // Only whole frames go out.
  override get allowsKeepAlive() {
    return true;
  }
}
